"""Whole stores: walked through, compared, and moved from one kind to another."""

from foredeck.store.copying.compare import Comparison, Totals, compare
from foredeck.store.copying.whole import Record, WholeStore, records_of

__all__ = ["Comparison", "Record", "Totals", "WholeStore", "compare", "records_of"]

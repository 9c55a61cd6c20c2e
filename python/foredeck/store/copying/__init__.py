"""Whole stores: walked through, compared, and moved from one kind to another."""

from foredeck.store.copying.compare import Comparison, Totals, compare
from foredeck.store.copying.move import NotEmpty, copy, count_of
from foredeck.store.copying.whole import Record, WholeStore, digests_of, records_of

__all__ = [
    "Comparison",
    "NotEmpty",
    "Record",
    "Totals",
    "WholeStore",
    "compare",
    "copy",
    "count_of",
    "digests_of",
    "records_of",
]

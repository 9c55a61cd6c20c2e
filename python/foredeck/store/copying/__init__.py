"""Whole stores: compared, and moved from one kind to another."""

from foredeck.store.copying.compare import StoreComparison, Totals, compare
from foredeck.store.copying.move import NotEmpty, copy, count_of

__all__ = ["NotEmpty", "StoreComparison", "Totals", "compare", "copy", "count_of"]

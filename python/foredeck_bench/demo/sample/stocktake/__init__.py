"""Keeps the books of a small warehouse."""

from stocktake.ledger import Ledger
from stocktake.models import Item, Movement, StockError

__all__ = ["Item", "Ledger", "Movement", "StockError"]

"""The weekly report."""

from shop import stock as shelves


def low(stock, items, least=3):
    """Items of which fewer than `least` are left."""
    return [item for item in items if shelves.get_cnt(stock, item) < least]

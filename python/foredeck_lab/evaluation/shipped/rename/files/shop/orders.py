"""Orders of customers."""

from shop.stock import get_cnt


def can_deliver(stock, order):
    """Whether all that is ordered is there."""
    return all(get_cnt(stock, item) >= count for item, count in order.items())

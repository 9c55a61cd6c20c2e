"""Orders of customers."""

from shop.stock import count_of


def can_deliver(stock, order):
    """Whether all that is ordered is there."""
    return all(count_of(stock, item) >= count for item, count in order.items())

"""Prices by quantity."""

TIERS = ((1, 500), (10, 450), (100, 400))
"""From this quantity on, this price in cents."""


def unit_price(quantity):
    """The price of one piece when so many are bought."""
    if quantity < 1:
        raise ValueError("quantity must be at least 1")
    price = TIERS[0][1]
    for first, cents in TIERS:
        if quantity > first:
            price = cents
    return price


def total(quantity):
    """What so many pieces cost."""
    return quantity * unit_price(quantity)

"""What is on the shelves."""


def count_of(stock, item):
    """How many pieces of an item there are."""
    return stock.get(item, 0)

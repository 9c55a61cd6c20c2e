"""What is on the shelves."""


def get_cnt(stock, item):
    """How many pieces of an item there are."""
    return stock.get(item, 0)

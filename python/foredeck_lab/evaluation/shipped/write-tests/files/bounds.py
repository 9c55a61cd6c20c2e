"""Numbers within bounds."""


def clamp(value, low, high):
    """The value, or the bound that it passes. Raises ValueError where low is above high."""
    if low > high:
        raise ValueError("low is above high")
    return max(low, min(value, high))


def share(part, whole):
    """The part in whole percent, rounded down; 0 of nothing."""
    return 0 if whole == 0 else 100 * part // whole

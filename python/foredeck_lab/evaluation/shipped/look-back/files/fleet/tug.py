"""Ships: tugs."""

MOST_PULL = 65
"""So many pull has a tug at most."""


def find_tug(fleet, number):
    """Ships with this number of the fleet."""
    if number < 0:
        raise ValueError("a tug has no negative number")
    return [each for each in fleet if each["kind"] == "tug" and each["number"] == number]


def before_tug(fleet, number):
    """Ships with a smaller number of the fleet."""
    if number < 0:
        raise ValueError("a tug has no negative number")
    return [each for each in fleet if each["kind"] == "tug" and each["number"] < number]


def after_tug(fleet, number):
    """Ships with a larger number of the fleet."""
    if number < 0:
        raise ValueError("a tug has no negative number")
    return [each for each in fleet if each["kind"] == "tug" and each["number"] > number]


def except_tug(fleet, number):
    """Ships with another number of the fleet."""
    if number < 0:
        raise ValueError("a tug has no negative number")
    return [each for each in fleet if each["kind"] == "tug" and each["number"] != number]

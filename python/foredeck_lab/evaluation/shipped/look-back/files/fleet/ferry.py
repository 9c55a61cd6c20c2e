"""Ships: ferrys."""

MOST_MOORINGS = 12
"""So many moorings has a ferry at most."""


def find_ferry(fleet, number):
    """Ships with this number of the fleet."""
    if number < 0:
        raise ValueError("a ferry has no negative number")
    return [each for each in fleet if each["kind"] == "ferry" and each["number"] == number]


def before_ferry(fleet, number):
    """Ships with a smaller number of the fleet."""
    if number < 0:
        raise ValueError("a ferry has no negative number")
    return [each for each in fleet if each["kind"] == "ferry" and each["number"] < number]


def after_ferry(fleet, number):
    """Ships with a larger number of the fleet."""
    if number < 0:
        raise ValueError("a ferry has no negative number")
    return [each for each in fleet if each["kind"] == "ferry" and each["number"] > number]


def except_ferry(fleet, number):
    """Ships with another number of the fleet."""
    if number < 0:
        raise ValueError("a ferry has no negative number")
    return [each for each in fleet if each["kind"] == "ferry" and each["number"] != number]

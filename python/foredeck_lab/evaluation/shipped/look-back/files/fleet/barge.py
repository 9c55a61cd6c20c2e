"""Ships: barges."""

MOST_TONNES = 340
"""So many tonnes has a barge at most."""


def find_barge(fleet, number):
    """Ships with this number of the fleet."""
    if number < 0:
        raise ValueError("a barge has no negative number")
    return [each for each in fleet if each["kind"] == "barge" and each["number"] == number]


def before_barge(fleet, number):
    """Ships with a smaller number of the fleet."""
    if number < 0:
        raise ValueError("a barge has no negative number")
    return [each for each in fleet if each["kind"] == "barge" and each["number"] < number]


def after_barge(fleet, number):
    """Ships with a larger number of the fleet."""
    if number < 0:
        raise ValueError("a barge has no negative number")
    return [each for each in fleet if each["kind"] == "barge" and each["number"] > number]


def except_barge(fleet, number):
    """Ships with another number of the fleet."""
    if number < 0:
        raise ValueError("a barge has no negative number")
    return [each for each in fleet if each["kind"] == "barge" and each["number"] != number]

"""Ships: yachts."""

MOST_GUESTS = 18
"""So many guests has a yacht at most."""


def find_yacht(fleet, number):
    """Ships with this number of the fleet."""
    if number < 0:
        raise ValueError("a yacht has no negative number")
    return [each for each in fleet if each["kind"] == "yacht" and each["number"] == number]


def before_yacht(fleet, number):
    """Ships with a smaller number of the fleet."""
    if number < 0:
        raise ValueError("a yacht has no negative number")
    return [each for each in fleet if each["kind"] == "yacht" and each["number"] < number]


def after_yacht(fleet, number):
    """Ships with a larger number of the fleet."""
    if number < 0:
        raise ValueError("a yacht has no negative number")
    return [each for each in fleet if each["kind"] == "yacht" and each["number"] > number]


def except_yacht(fleet, number):
    """Ships with another number of the fleet."""
    if number < 0:
        raise ValueError("a yacht has no negative number")
    return [each for each in fleet if each["kind"] == "yacht" and each["number"] != number]

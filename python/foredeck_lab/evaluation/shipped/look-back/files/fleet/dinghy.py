"""Ships: dinghys."""

MOST_OARS = 2
"""So many oars has a dinghy at most."""


def find_dinghy(fleet, number):
    """Ships with this number of the fleet."""
    if number < 0:
        raise ValueError("a dinghy has no negative number")
    return [each for each in fleet if each["kind"] == "dinghy" and each["number"] == number]


def before_dinghy(fleet, number):
    """Ships with a smaller number of the fleet."""
    if number < 0:
        raise ValueError("a dinghy has no negative number")
    return [each for each in fleet if each["kind"] == "dinghy" and each["number"] < number]


def after_dinghy(fleet, number):
    """Ships with a larger number of the fleet."""
    if number < 0:
        raise ValueError("a dinghy has no negative number")
    return [each for each in fleet if each["kind"] == "dinghy" and each["number"] > number]


def except_dinghy(fleet, number):
    """Ships with another number of the fleet."""
    if number < 0:
        raise ValueError("a dinghy has no negative number")
    return [each for each in fleet if each["kind"] == "dinghy" and each["number"] != number]

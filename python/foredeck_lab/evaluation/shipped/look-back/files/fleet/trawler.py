"""Ships: trawlers."""

MOST_NETS = 7
"""So many nets has a trawler at most."""


def find_trawler(fleet, number):
    """Ships with this number of the fleet."""
    if number < 0:
        raise ValueError("a trawler has no negative number")
    return [each for each in fleet if each["kind"] == "trawler" and each["number"] == number]


def before_trawler(fleet, number):
    """Ships with a smaller number of the fleet."""
    if number < 0:
        raise ValueError("a trawler has no negative number")
    return [each for each in fleet if each["kind"] == "trawler" and each["number"] < number]


def after_trawler(fleet, number):
    """Ships with a larger number of the fleet."""
    if number < 0:
        raise ValueError("a trawler has no negative number")
    return [each for each in fleet if each["kind"] == "trawler" and each["number"] > number]


def except_trawler(fleet, number):
    """Ships with another number of the fleet."""
    if number < 0:
        raise ValueError("a trawler has no negative number")
    return [each for each in fleet if each["kind"] == "trawler" and each["number"] != number]

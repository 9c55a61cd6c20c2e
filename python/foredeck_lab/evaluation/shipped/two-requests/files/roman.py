"""Roman numbers."""

VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def to_number(text):
    """`XIV` as 14."""
    number = 0
    for letter in text:
        number += VALUES[letter]
    return number

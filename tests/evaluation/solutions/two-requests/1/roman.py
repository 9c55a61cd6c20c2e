"""Roman numbers."""

VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def to_number(text):
    """`XIV` as 14."""
    values = [VALUES[letter] for letter in text]
    number = 0
    for at, value in enumerate(values):
        number += -value if value < max(values[at:]) else value
    return number

"""Roman numbers."""

VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
PARTS = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC")),
    *((50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)


def to_number(text):
    """`XIV` as 14."""
    values = [VALUES[letter] for letter in text]
    number = 0
    for at, value in enumerate(values):
        number += -value if value < max(values[at:]) else value
    return number


def to_roman(number):
    """14 as `XIV`."""
    if not 0 < number < 4000:
        raise ValueError("roman numbers go from 1 to 3999")
    text = ""
    for value, letters in PARTS:
        text += letters * (number // value)
        number %= value
    return text

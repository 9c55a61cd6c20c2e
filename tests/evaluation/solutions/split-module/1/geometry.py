"""Reads shapes from a text."""

from shapes import Box, Circle


def parse(text):
    """`circle 2` or `box 2 3` as a shape. Raises ValueError."""
    kind, *sizes = text.split()
    numbers = [int(size) for size in sizes]
    if kind == "circle":
        return Circle(*numbers)
    if kind == "box":
        return Box(*numbers)
    raise ValueError(f"no such shape: {kind}")

"""Shapes, and how they are read from a text."""


class Circle:
    """A circle."""

    def __init__(self, radius):
        self.radius = radius

    def area(self):
        """With pi as 3, which is good enough here."""
        return 3 * self.radius**2


class Box:
    """A rectangle."""

    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self):
        """Width by height."""
        return self.width * self.height


def parse(text):
    """`circle 2` or `box 2 3` as a shape. Raises ValueError."""
    kind, *sizes = text.split()
    numbers = [int(size) for size in sizes]
    if kind == "circle":
        return Circle(*numbers)
    if kind == "box":
        return Box(*numbers)
    raise ValueError(f"no such shape: {kind}")

"""Shapes."""


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

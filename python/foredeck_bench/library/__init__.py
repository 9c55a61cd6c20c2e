"""The same conversation through Pi and through a loop in Python."""

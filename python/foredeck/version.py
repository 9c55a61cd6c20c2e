"""The version, apart from the package that loads everything by name."""

__version__ = "0.1.0"

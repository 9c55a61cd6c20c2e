"""Texts that are cut where they are too long for their place; an ellipsis ends what was cut."""

from __future__ import annotations


def cut(text: str, chars: int) -> str:
    """At most this many characters of a text."""
    return text if len(text) <= chars else text[: chars - 1] + "…"


def shortened(text: str, chars: int) -> str:
    """A text on one line of at most this many characters."""
    return cut(" ".join(text.split()), chars)

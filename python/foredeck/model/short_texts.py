"""Texts that are cut where they are too long for their place; an ellipsis ends what was cut."""

from __future__ import annotations


def cut(text: str, chars: int) -> str:
    """At most this many characters of a text."""
    return text if len(text) <= chars else text[: chars - 1] + "…"


def shortened(text: str, chars: int) -> str:
    """A text on one line of at most this many characters."""
    return cut(" ".join(text.split()), chars)


def whole_lines(text: str, chars: int, size: int | None = None) -> str:
    """A text as far as it fits into `chars` characters and `size` bytes, in whole lines, with a
    word on the rest; empty where not even the first line fits."""

    def fits(part: str) -> bool:
        if len(part) > chars:
            return False
        return size is None or len(part.encode(errors="surrogatepass")) <= size

    if fits(text):
        return text
    kept = ""
    for line in text.splitlines(keepends=True):
        longer = kept + line
        if not fits(longer + _rest(text, longer)):
            break
        kept = longer
    return kept + _rest(text, kept) if kept else ""


def _rest(text: str, kept: str) -> str:
    return f"({len(text) - len(kept):,} more characters)"

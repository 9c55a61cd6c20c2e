"""The status line, and sizes as people read them."""

from __future__ import annotations

from foredeck.context.messages.items import IMAGE_CHARS
from foredeck.model.call_values import CallStats


def status_line(stats: CallStats, saved: str) -> str:
    """`saved`: what the session has saved so far; empty as long as that is not worth a word."""
    parts = [saved, f"{stats.folded} folded" if stats.folded else ""]
    said = ", ".join(part for part in parts if part)
    return f"foredeck: {said}" if said else "foredeck"


def tokens_of(stats: CallStats, chars: int) -> int:
    """Tokens behind one of the counts of characters in `stats`."""
    return int((chars - stats.images * IMAGE_CHARS) / stats.rate) + stats.image_tokens


def short(count: int) -> str:
    """A count of tokens in few characters: 950, 12.3k."""
    return str(count) if count < 1000 else f"{count / 1000:.1f}".removesuffix(".0") + "k"

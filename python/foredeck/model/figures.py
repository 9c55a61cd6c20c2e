"""Numbers, money and times as people read them, and texts cut to the size of their place: an
ellipsis ends what was cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
"""In English, whatever the machine's language: they stand in prompts and in what models write."""


def short_count(count: int) -> str:
    """A number with three significant digits: 950, 12.3k, 4.56M."""
    for limit, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if count >= limit:
            value = count / limit
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}{unit}"
    return str(count)


def short_tokens(count: int) -> str:
    """A count of tokens with one digit behind the point, if any: 950, 12.3k."""
    return str(count) if count < 1000 else f"{count / 1000:.1f}".removesuffix(".0") + "k"


def counted(count: int, noun: str) -> str:
    """A number with its noun: `1 call`, `1,234 calls`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def money(value: float) -> str:
    """Dollars, with two digits that say something: `$12.40`, `$0.14`, `$0.0021`."""
    if value <= -0.00005:
        return f"-{money(-value)}"
    value = max(0.0, value)
    if value >= 0.095 or value < 0.00005:
        return f"${value:,.2f}"
    return f"${value:.{3 if value >= 0.0095 else 4}f}"


def when(time_ms: int) -> str:
    """Milliseconds since 1970 as local date and time; unchanged where no calendar has that time."""
    try:
        return datetime.fromtimestamp(time_ms / 1000).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(time_ms)


def lasted(duration_ms: int) -> str:
    """A duration with its two largest units: `0.4s`, `45s`, `12m`, `6h 12m`, `3d 4h`."""
    if 0 < duration_ms < 10_000:
        return f"{duration_ms / 1000:.1f}s"
    seconds = duration_ms // 1000
    for unit, size, inner, part in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit} {seconds % size // part}{inner}"
    return f"{seconds // 60}m" if seconds >= 60 else f"{seconds}s"


def cut(text: str, chars: int, end: str = "…") -> str:
    """At most this many characters of a text, with `end` where it was cut."""
    return text if len(text) <= chars else text[: chars - len(end)] + end


def shortened(text: str, chars: int) -> str:
    """A text on one line of at most this many characters."""
    return cut(" ".join(text.split()), chars)


def some_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """The first of some names in a row, with the number of the others: `a, b and 3 more`."""
    more = f"{between.strip(' ,')} and {len(names) - most:,} more" if len(names) > most else ""
    return between.join(names[:most]) + more


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

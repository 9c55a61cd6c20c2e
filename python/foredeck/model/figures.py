"""Numbers, money, times and shortened texts for people; an ellipsis ends a cut text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
"""English on every machine: they occur in prompts and in models' answers."""


_UNITS = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))


def short_count(count: float) -> str:
    """Three significant digits: 950, 12.3k, 4.56M, -1.20k."""
    if count < 0:
        return f"-{short_count(-count)}" if round(count) else "0"
    # As it is rounded: 999,600 is 1.00M.
    count = float(f"{count:.3g}") if count >= 1_000 else round(count)
    for limit, unit in _UNITS:
        if count >= limit:
            value = count / limit
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}{unit}"
    return str(round(count))


def short_bytes(size: int) -> str:
    """950B, 12.3kB, 4.56MB."""
    return f"{short_count(size)}B"


class Amounts(NamedTuple):
    """Two amounts and their difference, as text."""

    plain: str
    ours: str
    saved: str


def amounts(plain: float, ours: float, *, in_money: bool) -> Amounts:
    """Dollars or tokens that add up as printed."""
    unit, letter = 1, ""
    if not in_money:
        # In thousands from 10,000 on: what is saved of less would have no digits.
        larger = max(plain, ours)
        unit, letter = next((pair for pair in _UNITS if larger >= 10 * pair[0]), (1, ""))
    plain, ours = plain / unit, ours / unit
    digits = _digits(abs(plain - ours)) or _digits(max(plain, ours))
    digits = max(digits, 2) if in_money else min(max(digits, 1), 2) if letter else 0
    plain, ours = round(plain, digits), round(ours, digits)
    saved = round(plain - ours, digits)
    sign, dollar = "-" if saved < 0 else "", "$" if in_money else ""
    return Amounts(
        f"{dollar}{plain:,.{digits}f}{letter}",
        f"{dollar}{ours:,.{digits}f}{letter}",
        f"{sign}{dollar}{abs(saved):,.{digits}f}{letter}"
        if saved
        else money(0)
        if in_money
        else "0",
    )


def _digits(value: float) -> int:
    limits = (0.00005, 4), (0.0095, 3), (0.095, 2), (9.5, 0)
    return max(((limit, digits) for limit, digits in limits if value >= limit), default=(0, 0))[1]


def counted(count: int, noun: str) -> str:
    """`1 call`, `1,234 calls`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def money(value: float) -> str:
    """Dollars with two useful digits: `$12.40`, `$0.14`, `$0.0021`."""
    if value <= -0.00005:
        return f"-{money(-value)}"
    value = max(0.0, value)
    return f"${value:,.{max(2, _digits(value))}f}"


def when(time_ms: int) -> str:
    """Milliseconds since 1970 as local date and time."""
    try:
        return datetime.fromtimestamp(time_ms / 1000).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(time_ms)


def week_of(time_ms: int) -> str:
    """The Monday of a time's week."""
    day = datetime.fromtimestamp(time_ms / 1000)
    return f"{day - timedelta(days=day.weekday()):%Y-%m-%d}"


def lasted(duration_ms: int) -> str:
    """A duration in its two largest units: `0.4s`, `45s`, `12m`, `6h 12m`, `3d 4h`."""
    if 0 < duration_ms < 10_000:
        return f"{duration_ms / 1000:.1f}s"
    seconds = duration_ms // 1000
    for unit, size, inner, part in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit} {seconds % size // part}{inner}"
    return f"{seconds // 60}m" if seconds >= 60 else f"{seconds}s"


def cut(text: str, chars: int, end: str = "…") -> str:
    return text if len(text) <= chars else text[: chars - len(end)] + end


def shortened(text: str, chars: int) -> str:
    return cut(" ".join(text.split()), chars)


def model_name(name: str) -> str:
    """A model's `provider/id`, of which a host may give one or none."""
    return name.strip("/") or "a model without a name"


def some_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """The first names and the number of the rest: `a, b and 3 more`."""
    more = f"{between.strip(' ,')} and {len(names) - most:,} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def whole_lines(text: str, chars: int, size: int | None = None) -> str:
    """Whole lines within `chars` characters and `size` bytes, with a note on the rest."""

    def fits(part: str) -> bool:
        if len(part) > chars:
            return False
        return size is None or len(part.encode(errors="surrogatepass")) <= size

    if fits(text):
        return text
    beginning = ""
    for line in text.splitlines(keepends=True):
        longer = beginning + line
        if not fits(longer + _rest(text, longer)):
            break
        beginning = longer
    return beginning + _rest(text, beginning) if beginning else ""


def _rest(text: str, kept: str) -> str:
    return f"({len(text) - len(kept):,} more characters)"

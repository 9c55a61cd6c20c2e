"""Days as the work log names them: the same in every time zone."""

from __future__ import annotations

from datetime import UTC, datetime

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)


def day(time_ms: int, seen_ms: int) -> str:
    """`3 May`, by universal time; `3 May 2025` where it is seen in another year."""
    then, seen = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (time_ms, seen_ms))
    name = f"{then.day} {_MONTHS[then.month - 1]}"
    return name if then.year == seen.year else f"{name} {then.year}"

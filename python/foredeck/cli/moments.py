"""Points in time as a user types them: `2026-03-01 14:00`, `2h ago`, `yesterday`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

EXAMPLES = "2026-03-01, 2026-03-01T14:00:00+01:00, 14:30, 2h ago, yesterday"

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(
    r"(?P<count>\d{1,6})\s*(?P<unit>s|m|h|d|w)(?:ec|econd|in|inute|our|r|ay|eek)?s?(?:\s+ago)?"
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_CLOCK = re.compile(r"\d\d:\d\d(?::\d\d)?")


def parse_moment(text: str, now: datetime | None = None) -> int | None:
    """Milliseconds since 1970 of a point in time, None for what is none.

    A day or a second means its end, so that everything listed with that time is included; a time
    without a zone is local. `now`: with a zone; the clock's by default.
    """
    here = now or datetime.now().astimezone()
    said = " ".join(text.lower().split())
    moment = _relative(said, here) or _absolute(text.strip(), here)
    return None if moment is None else int(moment.timestamp() * 1000)


def _relative(text: str, now: datetime) -> datetime | None:
    if text in ("now", "today"):
        return now
    if text == "yesterday":
        return now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(microseconds=1)
    ago = _AGO.fullmatch(text)
    if ago is None:
        return None
    try:
        return now - timedelta(**{_UNITS[ago["unit"]]: int(ago["count"])})
    except OverflowError:
        return None


def _absolute(text: str, now: datetime) -> datetime | None:
    if _CLOCK.fullmatch(text):
        text = f"{now:%Y-%m-%d} {text}"
    try:
        moment = datetime.fromisoformat(text)
        if _DAY.fullmatch(text):
            moment += timedelta(days=1, microseconds=-1)
        elif moment.microsecond == 0:
            moment += timedelta(seconds=1, microseconds=-1)
        return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    except (ValueError, OverflowError):
        return None

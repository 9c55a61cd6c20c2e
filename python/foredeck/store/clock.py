"""The clock that transactions are timed by."""

from __future__ import annotations

import time


def now_ms() -> int:
    """The time by this machine's clock, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000

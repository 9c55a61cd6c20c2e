"""The clock that transactions are timed by."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Milliseconds since 1970, as this machine has them."""
    return time.time_ns() // 1_000_000

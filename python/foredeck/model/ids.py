"""Ids that are minted here: UUIDv7, so that they sort by the time of their making."""

from __future__ import annotations

import os
import threading
import time

_lock = threading.Lock()
_counts: dict[int, int] = {}
"""By millisecond, of those that got ids last: the count of the newest of these."""
_KEPT = 64
"""So many milliseconds: a clock that a test passes in may stop while the real one goes on."""


def uuid7(now_ms: int | None = None) -> str:
    """A new UUID version 7 (RFC 9562): 48 bits of milliseconds, 12 bits that count this process's
    ids of one millisecond, 62 random bits.

    So the ids of a process sort as they were made. The count begins at a random number below
    2,048, so that after more than 2,048 ids of one millisecond the order may be lost, but not that
    they differ.
    """
    milliseconds = (time.time_ns() // 1_000_000 if now_ms is None else now_ms) & (2**48 - 1)
    random = int.from_bytes(os.urandom(10))
    with _lock:
        before = _counts.pop(milliseconds, None)
        count = random >> 68 & 0x7FF if before is None else before + 1
        _counts[milliseconds] = count
        if len(_counts) > _KEPT:
            del _counts[next(iter(_counts))]
    value = milliseconds << 80 | 0x7 << 76 | (count & 0xFFF) << 64
    value |= 0b10 << 62 | random & (2**62 - 1)
    text = f"{value:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

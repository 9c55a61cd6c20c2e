"""Ids that are minted here: UUIDv7, so that they sort by the time of their making."""

from __future__ import annotations

import os
import time


def uuid7(now_ms: int | None = None) -> str:
    """A new UUID version 7 (RFC 9562): 48 bits of milliseconds, then random bits."""
    milliseconds = (time.time_ns() // 1_000_000 if now_ms is None else now_ms) & (2**48 - 1)
    random = int.from_bytes(os.urandom(10))
    value = milliseconds << 80 | 0x7 << 76 | (random >> 68 & 0xFFF) << 64
    value |= 0b10 << 62 | random & (2**62 - 1)
    text = f"{value:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

"""Ids, short names of tasks and memory entries such as `t-k3f9`, and hashes with the canonical JSON
behind them: sorted keys, no white space, UTF-8, strings unnormalised.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterable
from typing import Any
from uuid import UUID

_lock = threading.Lock()
_counts: dict[int, int] = {}
"""The newest id's count, by millisecond."""
_KEPT = 64
"""Milliseconds kept: a clock passed in by tests may stop."""


def uuid7(now_ms: int | None = None) -> str:
    """A UUID version 7 (RFC 9562), with a count of the millisecond's ids after the time.

    The count starts below 2,048: more ids in a millisecond may lose their order, never their
    uniqueness.
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


# UUIDs that were made together begin alike and differ only near their end, so a key is made of the
# random bits at the end. Four of its letters are a name; more only where two ids share four.

TASK, ENTRY = "t-", "m-"
"""The marks of tasks and memory entries."""

SHORTEST = 4
"""Least characters of a short name, or of an id that is not given in full."""

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
"""Without easily confused ones."""
_KEY_LETTERS = 12
_MISREAD = str.maketrans("oil", "011")
_ATTEMPTS = 20


def key_of(id: str) -> str:
    """An id's key of twelve letters; an id without a UUID is its own key."""
    try:
        bits = UUID(id.rpartition(":")[2]).int
    except ValueError:
        return id
    return "".join(_LETTERS[bits >> 5 * place & 31] for place in range(_KEY_LETTERS))


class ShortNames:
    """Short names of ids with one mark."""

    def __init__(self, mark: str, ids: Iterable[str] = ()) -> None:
        self._mark = mark
        self._by_start: dict[str, list[str]] = {}
        self._ids: dict[str, None] = {}
        for id in ids:
            self.add(id)

    def add(self, id: str) -> None:
        """Adds an id; known ones change nothing."""
        if id not in self._ids:
            self._ids[id] = None
            self._by_start.setdefault(key_of(id)[:SHORTEST], []).append(id)

    def mint(self, now_ms: int) -> str:
        """A new UUIDv7 whose first four letters are unused, if any are left."""
        for _ in range(_ATTEMPTS):
            id = uuid7(now_ms)
            if key_of(id)[:SHORTEST] not in self._by_start:
                return id
        return id

    def name(self, id: str) -> str:
        """The shortest unique name."""
        key = key_of(id)
        others = [key_of(o) for o in self._by_start.get(key[:SHORTEST], ()) if o != id]
        length = SHORTEST
        while length < len(key) and any(other[:length] == key[:length] for other in others):
            length += 1
        return self._mark + key[:length]

    def find(self, text: str) -> list[str]:
        """Ids that a name, its beginning, or an id may mean."""
        query = text.strip()
        for id in (query, query.lower()):
            if id in self._ids:
                return [id]
        start = query.lower().removeprefix(self._mark).translate(_MISREAD)
        if not start:
            return []
        among = self._by_start.get(start[:SHORTEST], ()) if len(start) >= SHORTEST else self._ids
        return [id for id in among if key_of(id).startswith(start)]


JsonValue = Any
"""A value that `json` can write."""


# A cycle would end in a `RecursionError`: looking for one at each value takes a tenth of the time.
_CANONICAL = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, check_circular=False, separators=(",", ":"), allow_nan=False
)
_ESCAPED = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: JsonValue) -> bytes:
    """Raises `ValueError` for NaN and infinities, `TypeError` for what JSON cannot hold."""
    return encode_text(_CANONICAL.encode(value))


def encode_text(text: str) -> bytes:
    """UTF-8 of `text`; lone surrogates are kept (as WTF-8)."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")


def decode_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="surrogatepass")


def json_text(value: JsonValue) -> str:
    """Canonical JSON as text; lone surrogates are escaped."""
    text = _CANONICAL.encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _ESCAPED.encode(value)
    return text


def sha256_hex(data: bytes) -> str:
    """64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def hash_value(value: JsonValue) -> str:
    """SHA-256 of the canonical JSON."""
    return sha256_hex(canonical_json(value))


def hash_text(text: str) -> str:
    """SHA-256 of a text's bytes."""
    return sha256_hex(encode_text(text))

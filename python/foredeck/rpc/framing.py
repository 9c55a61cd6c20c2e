"""Bytes to lines: split on 0x0A and on nothing else, and never hold more than one line's limit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

LINE_LIMIT = 64 * 1024 * 1024
"""Longest line in bytes, its newline not counted."""

PREFIX_KEPT = 64 * 1024
"""Bytes of a line beyond the limit that are kept, to find out which request it was."""


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line beyond the limit: how it began, and its size in bytes."""

    prefix: bytes
    size: int


class LineSplitter:
    """Collects chunks and gives back whole lines, without their newline."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self.limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def pending(self) -> int:
        """Bytes of the line that has begun and not ended."""
        return self._size

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """Take a chunk of any size; gives each line that it ends."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._add(chunk[start:end])
            yield self._take()
            start = end + 1
        if start < len(chunk):
            self._add(chunk[start:])

    def _add(self, part: bytes) -> None:
        was_within = self._size <= self.limit
        self._size += len(part)
        if self._size <= self.limit:
            self._parts.append(part)
        elif was_within:
            self._parts = [(b"".join(self._parts) + part)[:PREFIX_KEPT]]

    def _take(self) -> bytes | TooLong:
        line, size = b"".join(self._parts), self._size
        self._parts, self._size = [], 0
        return line if size <= self.limit else TooLong(line, size)


_DECODER = json.JSONDecoder()


def leading_members(prefix: bytes) -> dict[str, Any]:
    """The members of a JSON object that are complete in its first bytes; `{}` if it is no object.

    Only the object's own members count: an `id` inside `params` is not the request's.
    """
    text = prefix.decode("utf-8", "ignore").lstrip(" \t\r")
    members: dict[str, Any] = {}
    position = 1 if text.startswith("{") else len(text)
    try:
        while position < len(text):
            name, position = _DECODER.raw_decode(text, _skip(text, position, " \t\r"))
            value, position = _DECODER.raw_decode(text, _skip(text, position, " \t\r:"))
            if not isinstance(name, str) or _skip(text, position, " \t\r") == len(text):
                break  # what the cut may have shortened is not taken for a value
            members[name] = value
            position = _skip(text, position, " \t\r,")
    except (ValueError, RecursionError):
        pass  # the rest is cut off, or not JSON: what was read so far stands
    return members


def _skip(text: str, position: int, characters: str) -> int:
    while position < len(text) and text[position] in characters:
        position += 1
    return position

"""From bytes to lines to JSON values and back, with the errors of the wire.

Expected errors of the layers below are `foredeck.errors.ForedeckError` and carry their own code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from foredeck.errors import ForedeckError

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
PROTOCOL_MISMATCH = -32001
CANCELLED = -32800


class ParseError(ForedeckError):
    """A line is not UTF-8, not JSON, or nested too deeply to be read."""

    code = PARSE_ERROR


class InvalidRequestError(ForedeckError):
    """A line is JSON, but not a request that can be served now."""

    code = INVALID_REQUEST


class InvalidParamsError(ForedeckError):
    """The parameters of a request do not have the shape that its method asks for."""

    code = INVALID_PARAMS


class ProtocolError(ForedeckError):
    """The host speaks another version of the protocol."""

    code = PROTOCOL_MISMATCH


class PeerClosedError(ForedeckError):
    """The connection ended before the other side answered."""


class RemoteError(ForedeckError):
    """The other side answered a request of ours with an error; `code` is the one that it sent."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


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
    """Collects chunks and gives back whole lines, without their newline: never more than one line's
    limit is held."""

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
            # The rest of the line is dropped as it comes: its sender decides how long it is.
            self._parts = [(b"".join(self._parts) + part)[:PREFIX_KEPT]]

    def _take(self) -> bytes | TooLong:
        line, size = b"".join(self._parts), self._size
        self._parts, self._size = [], 0
        return line if size <= self.limit else TooLong(line, size)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
# A line that is too long is answered under its id, whatever stands before that.
_LENIENT = json.JSONDecoder()
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ASCII_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def decode(line: bytes) -> Any:
    """The JSON value of one line. Raises `ParseError`, with a text that says what is wrong."""
    try:
        return _DECODER.decode(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise ParseError("Parse error: the line is not UTF-8") from None
    except RecursionError:
        raise ParseError("Parse error: nested too deeply") from None
    except ValueError as error:
        raise ParseError(f"Parse error: {error}") from None


def encode(message: Any) -> bytes:
    """The line for a JSON value, newline included.

    Raises ValueError, TypeError or RecursionError if it has no JSON form.
    """
    try:
        return _ENCODER.encode(message).encode("utf-8") + b"\n"
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8; as an escape it survives
        return _ASCII_ENCODER.encode(message).encode("ascii") + b"\n"


def leading_members(prefix: bytes) -> dict[str, Any]:
    """The members of a JSON object that are complete in its first bytes; `{}` if it is no object.

    Only the object's own members count: an `id` inside `params` is not the request's.
    """
    text = prefix.decode("utf-8", "ignore").lstrip(" \t\r")
    members: dict[str, Any] = {}
    position = 1 if text.startswith("{") else len(text)
    try:
        while position < len(text):
            name, position = _LENIENT.raw_decode(text, _skip(text, position, " \t\r"))
            value, position = _LENIENT.raw_decode(text, _skip(text, position, " \t\r:"))
            if not isinstance(name, str) or _skip(text, position, " \t\r") == len(text):
                break  # what the cut may have shortened is not taken for a value
            members[name] = value
            position = _skip(text, position, " \t\r,")
    except (ValueError, RecursionError):
        pass  # the rest is cut off, or not JSON: what was read so far counts
    return members


def _skip(text: str, position: int, characters: str) -> int:
    while position < len(text) and text[position] in characters:
        position += 1
    return position

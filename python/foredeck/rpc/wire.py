"""Bytes to lines to JSON values and back, and their errors."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn, Protocol

from foredeck.errors import ForedeckError

if sys.platform == "win32":
    import msvcrt

log = logging.getLogger(__name__)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
PROTOCOL_MISMATCH = -32001
CANCELLED = -32800


class ParseError(ForedeckError):
    """A line is not UTF-8, not JSON, or nested too deeply."""

    code = PARSE_ERROR


class InvalidRequestError(ForedeckError):
    """A line is JSON, but not a request that can be served now."""

    code = INVALID_REQUEST


class InvalidParamsError(ForedeckError):
    """A request's parameters do not fit its method."""

    code = INVALID_PARAMS


class ProtocolError(ForedeckError):
    """The host speaks another version of the protocol."""

    code = PROTOCOL_MISMATCH


class PeerClosedError(ForedeckError):
    """The connection ended before an answer."""


class RemoteError(ForedeckError):
    """The other side answered with an error; `code` is its own."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


LINE_LIMIT = 64 * 1024 * 1024
"""Longest line in bytes, without newline."""

PREFIX_KEPT = 64 * 1024
"""Of a longer line, to identify its request."""


class TooLong(NamedTuple):
    """An overlong line: its beginning, and its size in bytes."""

    prefix: bytes
    size: int


class LineSplitter:
    """Splits chunks into lines without newlines, holding at most one line's limit."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self.limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def pending(self) -> int:
        """Bytes of the unfinished line."""
        return self._size

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
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
    """The JSON value of a line. Raises `ParseError`, with the fault."""
    try:
        return _DECODER.decode(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise ParseError("Parse error: the line is not UTF-8") from None
    except RecursionError:
        raise ParseError("Parse error: nested too deeply") from None
    except ValueError as error:
        raise ParseError(f"Parse error: {error}") from None


def encode(message: Any) -> bytes:
    """The line for a JSON value. Raises ValueError, TypeError or RecursionError if it has no JSON
    form."""
    try:
        return _ENCODER.encode(message).encode("utf-8") + b"\n"
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8; as an escape it survives
        return _ASCII_ENCODER.encode(message).encode("ascii") + b"\n"


def leading_members(prefix: bytes) -> dict[str, Any]:
    """Complete members of a JSON object in its first bytes, without those in `params`."""
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


# What carries the lines


CHUNK = 256 * 1024
LINES_AHEAD = 256

FLUSH_SECONDS = 3.0
"""Longest wait for a host that does not read."""


def claim_stdio() -> tuple[int, int]:
    """Reserves stdin and stdout for the protocol; returns the descriptors.

    Others then print to stderr. Raises OSError if either is closed.
    """
    if sys.stdin is None or sys.stdout is None:  # a duplicate would take the closed one's number
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # stderr is closed: a stray print is lost rather than taken for an answer
        os.dup2(null, 1)
    os.close(null)
    _set_binary(source, sink)
    return source, sink


def _set_binary(*descriptors: int) -> None:
    if sys.platform == "win32":
        for descriptor in descriptors:
            msvcrt.setmode(descriptor, os.O_BINARY)


class LineReceiver(Protocol):
    """What is told of each line, on the loop."""

    def line_received(self, line: bytes, /) -> None: ...

    def line_too_long(self, line: TooLong, /) -> None: ...

    def input_ended(self, pending: int, /) -> None: ...

    def output_lost(self) -> None: ...


class StdioTransport:
    """Lines between two file descriptors, which it owns.

    Its threads reach the loop only by `call_soon_threadsafe`.
    """

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self._sink = sink
        self._splitter = LineSplitter(LINE_LIMIT)
        self._ahead = threading.Semaphore(LINES_AHEAD)
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="foredeck-read", daemon=True)
        self._writer = threading.Thread(target=self._write, name="foredeck-write", daemon=True)
        self._loop: asyncio.AbstractEventLoop
        self._receiver: LineReceiver

    def start(self, receiver: LineReceiver) -> None:
        """Starts both threads; lines reach `receiver` in order."""
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._reader.start()
        self._writer.start()

    def send(self, line: bytes) -> None:
        """Queues a line; never blocks or raises, from any thread."""
        self._outgoing.put(line)

    async def close(self) -> None:
        """Waits for the writer, at most FLUSH_SECONDS."""
        # Behind everything that was sent: the writer ends when it comes to it.
        self._outgoing.put(None)
        await asyncio.to_thread(self._writer.join, FLUSH_SECONDS)
        if self._writer.is_alive():
            log.warning("the host does not read: the last answers were not delivered")

    def _read(self) -> None:
        while chunk := self._read_chunk():
            for line in self._splitter.feed(chunk):
                # A host that sends faster than the engine works waits in its pipe, not in our
                # memory.
                self._ahead.acquire()
                if not self._post(self._deliver, line):
                    return
        self._post(self._receiver.input_ended, self._splitter.pending)

    def _read_chunk(self) -> bytes:
        try:
            return os.read(self.source, CHUNK)
        except OSError as error:  # a terminal or socket that went away ends the input too
            log.info("reading stopped: %s", error)
            return b""

    def _deliver(self, line: bytes | TooLong) -> None:
        # Before the line is served: the next one may be read meanwhile.
        self._ahead.release()
        if isinstance(line, TooLong):
            self._receiver.line_too_long(line)
        else:
            self._receiver.line_received(line)

    def _write(self) -> None:
        try:
            while (line := self._outgoing.get()) is not None:
                _write_all(self._sink, line)
        except OSError as error:
            log.info("writing stopped: %s", error)
            self._post(self._receiver.output_lost)
        finally:
            # The host takes this for the end of the engine.
            os.close(self._sink)

    def _post(self, function: Callable[..., None], *args: object) -> bool:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            return False
        return True


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        # A pipe takes as much at once as it has room for.
        view = view[os.write(descriptor, view) :]

"""What carries a peer's lines: for `foredeck engine`, two file descriptors.

One thread reads and one writes, so that neither a silent nor a slow host holds up the event loop.
Both threads reach the loop by `call_soon_threadsafe` alone.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import Protocol

from foredeck.rpc.framing import LINE_LIMIT, LineSplitter, TooLong

if sys.platform == "win32":
    import msvcrt

log = logging.getLogger(__name__)

CHUNK = 256 * 1024
LINES_AHEAD = 256
"""Lines that may wait for the loop before the reader stops reading."""

FLUSH_SECONDS = 3.0
"""How long closing waits for a host that has stopped reading."""


class Receiver(Protocol):
    """Takes what arrives. Every method is called on the event loop, in order of arrival."""

    def line_received(self, line: bytes) -> None:
        """One whole line, without its newline."""

    def line_too_long(self, line: TooLong) -> None:
        """A line beyond the limit; its content is gone."""

    def input_ended(self, torn: int) -> None:
        """The other side will send nothing more; `torn` bytes of an unfinished line are lost."""

    def output_lost(self) -> None:
        """The other side reads nothing more; what is sent from now on goes nowhere."""


class Transport(Protocol):
    """Carries lines both ways."""

    def start(self, receiver: Receiver) -> None:
        """Begin to read. Called once, on the event loop whose callbacks `receiver` gets."""

    def send(self, line: bytes) -> None:
        """Queue one line, newline included. Never blocks or raises; may be called on any thread."""

    async def close(self) -> None:
        """Send what is queued, for a bounded time, then close both ends."""


def claim_stdio() -> tuple[int, int]:
    """Take stdin and stdout for the protocol alone; gives the two descriptors.

    Whatever else in this process, or in a child of it, reads stdin from now on finds it empty, and
    what it prints goes to stderr. Raises OSError if either is closed.
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


class StdioTransport:
    """Lines in from one file descriptor and out to another; owns both."""

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self._sink = sink
        self._splitter = LineSplitter(LINE_LIMIT)
        self._ahead = threading.Semaphore(LINES_AHEAD)
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="foredeck-read", daemon=True)
        self._writer = threading.Thread(target=self._write, name="foredeck-write", daemon=True)
        self._loop: asyncio.AbstractEventLoop
        self._receiver: Receiver

    def start(self, receiver: Receiver) -> None:
        """Begin to read and write, on two daemon threads."""
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._reader.start()
        self._writer.start()

    def send(self, line: bytes) -> None:
        """Queue one line for the writer."""
        self._outgoing.put(line)

    async def close(self) -> None:
        """Wait until the writer is done, at most FLUSH_SECONDS."""
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
        """Call on the loop; False if the loop has ended."""
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

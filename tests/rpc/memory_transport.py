"""A transport inside one process, for tests and for embedding: lines in lists, no threads."""

from __future__ import annotations

from foredeck.rpc.peer import Peer
from foredeck.rpc.wire import LINE_LIMIT, LineSplitter, TooLong


class MemoryTransport:
    """Lines are given to `feed` and read from `sent`; both on the event loop."""

    def __init__(self, *, line_limit: int = LINE_LIMIT) -> None:
        self.sent: list[bytes] = []
        self.closed = False
        self._splitter = LineSplitter(line_limit)
        self._peer: Peer

    def start(self, peer: Peer) -> None:
        """Remember who takes the lines."""
        self._peer = peer

    def send(self, line: bytes) -> None:
        """Append one line, newline included, to `sent`."""
        self.sent.append(line)

    async def close(self) -> None:
        """Mark the transport closed."""
        self.closed = True

    def feed(self, chunk: bytes) -> None:
        """Bytes from the other side, whole lines or parts of them."""
        for line in self._splitter.feed(chunk):
            if isinstance(line, TooLong):
                self._peer.line_too_long(line)
            else:
                self._peer.line_received(line)

    def end(self) -> None:
        """The other side sends nothing more."""
        self._peer.input_ended(self._splitter.pending)

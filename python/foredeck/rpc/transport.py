"""What a peer needs of the thing that carries its lines, and what it gives to that thing."""

from __future__ import annotations

from typing import Protocol

from foredeck.rpc.framing import TooLong


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
        """Send what is queued, for a bounded time, then let go of both ends."""

"""What a session is: fixed when it is opened."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session's identity, and where it comes from."""

    id: str
    cwd: str
    ancestors: frozenset[str] = frozenset()
    """Ids of the sessions that this one was forked from, near and far."""
    is_live: bool = True
    """Whether tools run now and here, so that the disk shows what they did."""
    calls_at_opening: int = 0
    """Ordinal of the newest call when the session was opened."""
    was_read_in: bool = False
    """Its history was read from a file before foredeck was on: there are turns that no call record
    knows."""
    origin: str = ""
    """Harness and file that its messages are read from, where that is an old history."""

    @property
    def family(self) -> frozenset[str]:
        """Ids of this session and of those that it was forked from."""
        return self.ancestors | {self.id}

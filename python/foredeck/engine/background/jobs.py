"""Jobs: what workers want done beside the agent's work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from foredeck.engine.background.asking import SessionAsking

Happening = Literal["call", "tool", "answer", "command", "compaction"]
"""What has just happened in the session: a prompt has gone out, a tool that its answer called has
run, a run has ended with an answer, the user has typed a command of ours, or wants the chat
compacted, which is still whole now."""


@dataclass(frozen=True, slots=True)
class Job:
    """Work of a while. It may be cancelled at any `await`; whatever it raises is logged.

    `name`: one that waits is replaced by a later one of the same name, unless that has a smaller
    `priority`. Of those that wait the one with the largest runs first.
    """

    name: str
    run: Callable[[SessionAsking], Awaitable[None]]
    priority: int = 0


class BackgroundWorker(Protocol):
    """Says what is to be done; made for one session, as sections and tools are."""

    def due(self, happened: Happening) -> Iterable[Job]:
        """The jobs that may run now. Called on the engine's thread after the answer has gone out:
        short, since the next request waits for it."""
        ...

    def close(self) -> None:
        """The session is let go. Called while its store is open, after its jobs were cancelled."""
        ...

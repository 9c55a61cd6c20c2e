"""Jobs: what workers want done beside the agent's work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from foredeck.engine.background.asking import SessionAsking

SessionEvent = Literal["call", "tool", "answer", "command", "compaction"]
"""What has just happened in the session.

call        a prompt has gone out
tool        a tool that the answer called has run
answer      a run has ended with an answer
command     the user has typed a command of ours
compaction  the user wants the chat compacted; it is still whole
"""


@dataclass(frozen=True, slots=True)
class Job:
    """Work that takes a while. It may be cancelled at any `await`; whatever it raises is logged.

    `name`: a job that waits is replaced by a later one of its name, unless that has a smaller
    `priority`. Of the jobs that wait, the one with the largest priority runs first.
    """

    name: str
    run: Callable[[SessionAsking], Awaitable[None]]
    priority: int = 0


class BackgroundWorker(Protocol):
    """Says what is to be done; made for one session, as sections and tools are."""

    def due(self, happened: SessionEvent) -> Iterable[Job]:
        """The jobs that may run now. Called on the engine's thread after the answer has gone out:
        short, since the next request waits for it."""
        ...

    def close(self) -> None:
        """The session is let go. Called while its store is open, after its jobs were cancelled."""
        ...

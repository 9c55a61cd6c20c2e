"""What a session has beside its chat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from foredeck.context.head import HeadSection
from foredeck.memory.session import SessionMemory

if TYPE_CHECKING:  # what a session may never use is imported where it is made
    from foredeck.tasks.session import ActiveTask, SessionTasks

StandInKind = Literal["observation", "reflection"]


@dataclass(frozen=True, slots=True)
class StandIn:
    """A text that replaces all messages it covers, or none."""

    id: str
    """Id of the stored object."""
    kind: StandInKind
    covers: tuple[str, ...]
    """Message addresses, in order."""
    text: str
    task: str = ""
    """The work at its end; empty if not noted."""
    suggestion: str = ""


class StandIns(Protocol):
    """A session's stand-ins, on all branches."""

    def known(self) -> Sequence[StandIn]:
        """All of them, oldest first. Called at every model call, so it must not block."""
        ...

    def is_due(self, chat_tokens: int, standing_tokens: int) -> bool:
        """Whether more chat may be replaced; not asked when the prompt does not fit.

        `chat_tokens`: not replaced yet; `standing_tokens`: the stand-ins in place.
        """
        ...


@dataclass(frozen=True, slots=True)
class ContextFacilities:
    sections: Sequence[HeadSection] = ()
    """Writers of the head, in its order."""
    stand_ins: StandIns | None = None
    tasks: SessionTasks | None = None
    """None if tasks are off, and in a replay."""
    memory: SessionMemory | None = None
    """None if memory is off, and in a replay."""

    @property
    def active_task(self) -> ActiveTask | None:
        return None if self.tasks is None else self.tasks.active

"""What a session has beside its chat, as far as its calls and tools use it."""

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
    """A text that may replace the messages that it covers, all of them or none."""

    id: str
    """Of the stored object that holds it."""
    kind: StandInKind
    covers: tuple[str, ...]
    """Addresses of the messages, in their order. A branch without one of them has no use for it."""
    text: str
    task: str = ""
    """What the work was at its end; empty where that was not noted."""
    suggestion: str = ""
    """What its author would do next; empty where that was not noted."""


class StandIns(Protocol):
    """What is known of a session, whichever branch it belongs to."""

    def known(self) -> Sequence[StandIn]:
        """All of them, oldest first. Asked at every call: it must not wait for anything."""
        ...

    def is_due(self, chat_tokens: int, standing_tokens: int) -> bool:
        """Whether more of them may replace chat. `chat_tokens`: of the chat that none has replaced
        yet; `standing_tokens`: of the texts that have replaced the rest.

        Not asked where a prompt would not fit otherwise.
        """
        ...


@dataclass(frozen=True, slots=True)
class ContextFacilities:
    """Made when the session is opened, and fixed from then on."""

    sections: Sequence[HeadSection] = ()
    """What writes into the block before the chat, in the order of that."""
    stand_ins: StandIns | None = None
    """What may replace spans of the chat; None where nothing ever does."""
    tasks: SessionTasks | None = None
    """The project's tasks; None where they are switched off, and in a replay."""
    memory: SessionMemory | None = None
    """What is kept of the user and the session; None where that is not known, and in a replay."""

    @property
    def active_task(self) -> ActiveTask | None:
        """The task that is worked on; None where tasks are switched off."""
        return None if self.tasks is None else self.tasks.active

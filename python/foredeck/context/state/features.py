"""What a session has beside its chat, as far as its calls and tools use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foredeck.context.head.section import HeadSection
from foredeck.context.state.stand_ins import StandIns
from foredeck.memory.session import SessionMemory

if TYPE_CHECKING:  # what a session may never use is imported where it is made
    from foredeck.tasks.session import ActiveTask, SessionTasks
    from foredeck.worklog.lessons import BranchLessons


@dataclass(frozen=True, slots=True)
class Features:
    """Made when the session is opened, and fixed from then on."""

    sections: Sequence[HeadSection] = ()
    """What writes into the block before the chat, in the order of that."""
    lessons: BranchLessons | None = None
    """Forms of commands that have worked; None where the model is not to read of any."""
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

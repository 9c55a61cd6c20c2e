"""All that the engine holds in memory of one open session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from foredeck.context.state.chat import Chat
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.info import SessionInfo
from foredeck.context.state.objects import Objects
from foredeck.context.state.request import PromptFrame
from foredeck.context.state.stand_ins import StandIns
from foredeck.derived.patience import Patience
from foredeck.memory.session import SessionMemory
from foredeck.sources.projects import Project

if TYPE_CHECKING:  # what a session may never use is imported where it is made
    from foredeck.tasks.tools import SessionTasks
    from foredeck.worklog.earlier import BranchLessons, EarlierWork


@dataclass(slots=True)
class Session:
    """One agent's interaction, in its parts. Whoever needs one or two of them takes these."""

    info: SessionInfo
    objects: Objects
    chat: Chat
    inbox: Inbox
    frame: PromptFrame
    lessons: BranchLessons | None = None
    """Forms of commands that have worked; None where the model is not to read of any."""
    earlier_work: EarlierWork | None = None
    """What the project's other sessions did; None where that is not known."""
    project: Project | None = None
    """The project that it works in, once it was searched for."""
    layers_wait: Patience = field(default_factory=lambda: Patience(0.0))
    """What is left of the time that its opening waits for layers, or what follows a call."""
    stand_ins: StandIns | None = None
    """What may replace spans of the chat; None where nothing ever does."""
    tasks: SessionTasks | None = None
    """The project's tasks; None where they are switched off, and in a replay."""
    memory: SessionMemory | None = None
    """What is kept of the user and the session; None where that is not known, and in a replay."""
    went_back_to: str = ""
    """Id of the call record whose bytes went out once more after a refusal."""
    withdrawal_told: bool = False
    """Whether the user knows that something in the head has to wait for the end of the turn."""

    @property
    def active_task(self) -> str | None:
        """Id of the task that is worked on, to which what is said now belongs."""
        return None if self.tasks is None else self.tasks.active.id()

    def keep_lease(self) -> None:
        """The session works on: no other may claim its task meanwhile."""
        if self.tasks is not None:
            self.tasks.active.keep_lease()

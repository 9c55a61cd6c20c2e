"""Where a session's search looks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.context.state.chat import Chat
from foredeck.context.state.objects import Objects
from foredeck.context.state.session import SessionFolder
from foredeck.memory.session import SessionMemory
from foredeck.store.store import Store

if TYPE_CHECKING:
    from foredeck.tasks.work import TaskWork


@dataclass(frozen=True, slots=True)
class SearchPlace:
    """`home`: the state folder with the index."""

    store: Store
    home: Path
    session_folder: SessionFolder
    objects: Objects
    chat: Chat
    memory: SessionMemory | None
    tasks: TaskWork | None

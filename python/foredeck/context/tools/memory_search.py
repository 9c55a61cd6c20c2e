"""The tool `memory-search`: what was said, done and read, in this session and in others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from foredeck.config import Config
from foredeck.context.state.chat import Chat
from foredeck.context.state.objects import Objects
from foredeck.context.state.opening import SessionFolder
from foredeck.memory.session import SessionMemory
from foredeck.store.protocol import LocalStore

if TYPE_CHECKING:  # loads with the first question, or the first task
    from foredeck.context.tools.found import FoundRow
    from foredeck.context.tools.session_search import SessionSearch
    from foredeck.tasks.work import TaskWork


@dataclass(frozen=True)
class MemorySearch:
    """The tool over one session. `home`: the state folder, where the index lies."""

    store: LocalStore
    home: Path
    session_folder: SessionFolder
    objects: Objects
    chat: Chat
    memory: SessionMemory | None
    tasks: TaskWork | None

    name: ClassVar = "memory-search"

    @cached_property
    def _search(self) -> SessionSearch:
        # Every session has the tool, and few use it.
        from foredeck.context.tools.session_search import SessionSearch

        return SessionSearch(self)

    def run(self, input: Mapping[str, Any], call: str) -> str:
        """The answer, for the model. Raises `ToolError` with a text for it."""
        del call
        return self._search.for_model(input)

    def for_user(self, query: str, limit: int) -> tuple[str, list[FoundRow]]:
        """The same for whoever types `/search`, with what the model sees among it: as text, and by
        row."""
        return self._search.for_user(query, limit)


def memory_search(
    config: Config,
    objects: Objects,
    chat: Chat,
    session_folder: SessionFolder,
    memory: SessionMemory | None,
    tasks: TaskWork | None,
) -> MemorySearch | None:
    """Search as this session sees it: the tool, and a part of `task-query`."""
    store = objects.store.local
    if store is None or not config.tools.search:
        return None
    return MemorySearch(store, config.home, session_folder, objects, chat, memory, tasks)

"""The tool `memory-search`: what was said, done and read, in any session."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from foredeck.config import Config
from foredeck.context.state.chat import Chat
from foredeck.context.state.objects import Objects
from foredeck.context.state.session import SessionFolder
from foredeck.context.tools.search_place import SearchPlace
from foredeck.memory.session import SessionMemory

if TYPE_CHECKING:
    from foredeck.context.tools.found import FoundRow
    from foredeck.context.tools.session_search import SessionSearch
    from foredeck.tasks.work import TaskWork


class MemorySearch:
    """The tool in one session."""

    name: ClassVar = "memory-search"

    def __init__(self, place: SearchPlace) -> None:
        self._place = place

    @cached_property
    def _search(self) -> SessionSearch:
        # Every session has the tool, and few use it.
        from foredeck.context.tools.session_search import SessionSearch

        return SessionSearch(self._place)

    def run(self, input: Mapping[str, Any], call: str) -> str:
        del call
        return self._search.for_model(input)

    def for_user(self, query: str, limit: int) -> tuple[str, list[FoundRow]]:
        return self._search.for_user(query, limit)


def memory_search(
    config: Config,
    objects: Objects,
    chat: Chat,
    session_folder: SessionFolder,
    memory: SessionMemory | None,
    tasks: TaskWork | None,
) -> MemorySearch | None:
    """Search for a session's tool and for `task-query`."""
    if not config.tools.search:
        return None
    place = SearchPlace(objects.store, config.home, session_folder, objects, chat, memory, tasks)
    return MemorySearch(place)

"""The project's tasks for an opened session: the tools, the active task, links to messages."""

from __future__ import annotations

from functools import partial

from foredeck.config import Config
from foredeck.context.state.chat import Chat
from foredeck.context.state.handles import resolve_name
from foredeck.context.state.objects import Objects, SessionInfo
from foredeck.context.state.opening import SessionFolder
from foredeck.context.tools.memory_search import MemorySearch
from foredeck.model.tasks import TaskLink
from foredeck.store.protocol import Store
from foredeck.tasks.claiming import Actor
from foredeck.tasks.session import SessionTasks, session_tasks
from foredeck.tasks.tools import SearchMessages
from foredeck.tasks.work import TaskWork
from foredeck.working import ContextUpdates


def work_on_tasks(
    config: Config, store: Store, info: SessionInfo, session_folder: SessionFolder
) -> TaskWork | None:
    """The project's tasks, for the session's agent; None where they are switched off."""
    local = store.local
    if config.tools.tasks == "off" or not info.is_live or local is None:
        return None
    return TaskWork(local, session_folder.project.id, Actor(info.id))


def tasks_of(
    work: TaskWork,
    objects: Objects,
    chat: Chat,
    updates: ContextUpdates | None,
    search: MemorySearch | None,
) -> SessionTasks:
    """The two tools and the active task."""
    return session_tasks(
        work,
        objects.info.id,
        resolve_link=partial(resolve_link, objects, chat),
        update_context=None if updates is None else updates.update,
        search_messages=None if search is None else _search_messages(search),
    )


def resolve_link(objects: Objects, chat: Chat, text: str) -> TaskLink:
    """What the model means by `@41` or `@41 turn 7`. Raises `ToolError`."""
    chat.take_up_newest()
    wanted = resolve_name(objects, text, beyond=True)
    if not objects.workspace.empty:
        objects.workspace.commit()  # a handle that was given for this must outlive a crash
    part = "" if wanted.slice is None else str(wanted.slice)
    label = f"{objects.info.id}:@{wanted.entry.ordinal}"  # whoever reads the task
    return TaskLink(object=wanted.entry.object, part=part, label=label)


def _search_messages(search: MemorySearch) -> SearchMessages:
    return lambda query, limit: search.run({"query": query, "limit": limit}, "")

"""The project's tasks for an opened session: the tools, the active task, links to messages."""

from __future__ import annotations

from functools import partial

from foredeck.config import Config
from foredeck.context.state.chat import Chat
from foredeck.context.state.handles import resolve
from foredeck.context.state.objects import Objects
from foredeck.context.state.session import Session
from foredeck.context.tools.memory_search import memory_search
from foredeck.engine.session_project import session_project
from foredeck.engine.working import update_context
from foredeck.model.tasks import TaskLink
from foredeck.tasks.active import ActiveTaskSection
from foredeck.tasks.mutate import TaskMutate
from foredeck.tasks.query import SearchMessages, TaskQuery
from foredeck.tasks.tools import SessionTasks, session_tasks


def tasks_of(config: Config, session: Session) -> SessionTasks | None:
    """The tasks as this session sees them, made once; None where they are switched off."""
    store = session.objects.store.local
    if config.tools.tasks == "off" or not session.info.is_live or store is None:
        return None
    if session.tasks is None:
        updates = update_context(config, session)
        session.tasks = session_tasks(
            store,
            session_project(config, session).id,
            session.info.id,
            resolve_link=partial(resolve_link, session.objects, session.chat),
            update_context=None if updates is None else updates.update,
            search_messages=_search_messages(config, session),
        )
    return session.tasks


def task_query(config: Config, session: Session) -> TaskQuery | None:
    """The model's tool for asking about tasks."""
    tasks = tasks_of(config, session)
    return None if tasks is None else tasks.query


def task_mutate(config: Config, session: Session) -> TaskMutate | None:
    """The model's tool for changing tasks."""
    tasks = tasks_of(config, session)
    return None if tasks is None else tasks.mutate


def active_task(config: Config, session: Session) -> ActiveTaskSection | None:
    """The active task in the head."""
    tasks = tasks_of(config, session)
    return None if tasks is None else tasks.section


def resolve_link(objects: Objects, chat: Chat, text: str) -> TaskLink:
    """What the model means by `@41` or `@41 turn 7`. Raises `ToolError`."""
    chat.take_up_newest()
    wanted = resolve(objects, text, beyond=True)
    if not objects.workspace.empty:
        objects.workspace.commit()  # a handle that was given for this must outlive a crash
    part = "" if wanted.slice is None else str(wanted.slice)
    label = f"{objects.info.id}:@{wanted.entry.ordinal}"  # whoever reads the task
    return TaskLink(object=wanted.entry.object, part=part, label=label)


def _search_messages(config: Config, session: Session) -> SearchMessages | None:
    tool = memory_search(config, session)
    if tool is None:
        return None
    return lambda query, limit: tool.run({"query": query, "limit": limit}, "")

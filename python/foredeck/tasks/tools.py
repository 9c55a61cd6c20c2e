"""The two task tools of a session, and its active task, made together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from foredeck.store.clock import now_ms
from foredeck.store.protocol import LocalStore
from foredeck.tasks.active import ActiveTask, ActiveTaskSection
from foredeck.tasks.claiming import Actor
from foredeck.tasks.mutate import ResolveLink, TaskMutate, UpdateContext
from foredeck.tasks.query import SearchMessages, TaskQuery
from foredeck.tasks.work import TaskWork

USER = "user"
"""The name of whoever sits at a session."""


@dataclass(frozen=True, slots=True)
class SessionTasks:
    """What a session has of its project's tasks.

    `query`, `mutate` and `section` are the agent's; `user_mutate` is for the person who sits at
    the session: what they change is a human's doing, and what they claim the session has.
    """

    work: TaskWork
    query: TaskQuery
    mutate: TaskMutate
    user_mutate: TaskMutate
    active: ActiveTask
    section: ActiveTaskSection


def session_tasks(
    store: LocalStore,
    project: str,
    session: str,
    *,
    resolve_link: ResolveLink | None = None,
    update_context: UpdateContext | None = None,
    search_messages: SearchMessages | None = None,
    clock: Callable[[], int] = now_ms,
) -> SessionTasks:
    """The tasks of a project (by its id) for a session's agent.

    What is not given the tools refuse in words: linking messages, the working memory, searching
    messages. Reads no task but the session's own until a tool is used.
    """
    work = TaskWork(store, project, Actor(session), clock)
    by_user = TaskWork(store, project, Actor(session, USER), clock, work.board)
    active = ActiveTask(store, session, clock)
    return SessionTasks(
        work,
        TaskQuery(work, search_messages),
        TaskMutate(work, resolve_link, update_context, active.set),
        TaskMutate(by_user, resolve_link, update_context, active.set),
        active,
        ActiveTaskSection(active, work.board.known_name),
    )

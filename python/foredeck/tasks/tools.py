"""The two task tools of a session, and its active task, made together."""

from __future__ import annotations

from dataclasses import dataclass

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
    work: TaskWork,
    session: str,
    *,
    resolve_link: ResolveLink | None = None,
    update_context: UpdateContext | None = None,
    search_messages: SearchMessages | None = None,
) -> SessionTasks:
    """The tasks of a project for a session's agent. `work`: as this agent works on them.

    What is not given the tools refuse in words: linking messages, the working memory, searching
    messages. Reads no task but the session's own until a tool is used.
    """
    by_user = work.by(Actor(session, USER))
    active = ActiveTask(work.store, session, work.now_ms)
    return SessionTasks(
        work,
        TaskQuery(work, search_messages),
        TaskMutate(work, resolve_link, update_context, active.set),
        TaskMutate(by_user, resolve_link, update_context, active.set),
        active,
        ActiveTaskSection(active, work.board.known_name),
    )

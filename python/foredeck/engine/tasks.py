"""The project's tasks in an opened session: the model's tools, and `/tasks`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from foredeck.config import Config
from foredeck.context.state.chat import Chat
from foredeck.context.state.handles import resolve_name
from foredeck.context.state.objects import Objects, SessionInfo
from foredeck.context.state.session import SessionFolder
from foredeck.context.tools.memory_search import MemorySearch
from foredeck.context.tools.versions import wanted_content
from foredeck.engine.opened import OpenedSession
from foredeck.errors import ToolError
from foredeck.hosts.protocol import Choice, CommandResult, CommandView, ViewKey, ViewRow
from foredeck.model.quoting import one_line
from foredeck.model.tasks import TaskLink
from foredeck.store.store import Store
from foredeck.tasks.board import Actor, Board, Task, holder
from foredeck.tasks.session import SessionTasks
from foredeck.tasks.wording import counts_line
from foredeck.tasks.work import TaskWork
from foredeck.working import ContextUpdates

LISTED = 50
"""Tasks in `/tasks` without a screen."""
_OPTION = re.compile(r"(?:^|\s)--(priority|type)[ =]?(\S*)")
_REASONS = ("wontfix", "duplicate")
_ON_ONE = frozenset({"claim", "close", "open", "show"})
"""Verbs that take a task."""

_NEEDED = {
    "new": "Say what is to be done: /tasks new TITLE.",
    "show": "Say which task: /tasks show t-k3f9.",
    "claim": "Say which task: /tasks claim t-k3f9.",
    "open": "Say which task: /tasks open t-k3f9.",
    "close": "Say which task, and what came of it: /tasks close t-k3f9 SUMMARY.",
}
"""Usage by verb."""

_KEYS: list[ViewKey] = [
    {"key": "enter", "label": "show", "run": "tasks show {row}", "opens": True},
    {"key": "c", "label": "claim", "run": "tasks claim {row}"},
    {
        "key": "x",
        "label": "close",
        "run": "tasks close {row} {text}",
        "asks": "What came of it? Enter closes the task, Esc leaves it.",
    },
    {"key": "o", "label": "open again", "run": "tasks open {row}"},
    {
        "key": "n",
        "label": "new",
        "run": "tasks new {text}",
        "asks": "What is to be done? --priority 0 behind it for what is most urgent.",
    },
]
_ON = "From the next session on, the model has task-query and task-mutate in this project."
_OFF = "From the next session on, the model has no task tools in this project; /tasks stays."


def work_on_tasks(
    config: Config, store: Store, info: SessionInfo, session_folder: SessionFolder
) -> TaskWork | None:
    """The tasks for the session's agent; None if off."""
    if config.tools.tasks == "off" or not info.is_live:
        return None
    return TaskWork(store, session_folder.project.id, Actor(info.id))


def make_tasks(
    work: TaskWork,
    objects: Objects,
    chat: Chat,
    updates: ContextUpdates | None,
    search: MemorySearch | None,
) -> SessionTasks:
    """The two tools, with the active task."""
    return SessionTasks(
        work,
        objects.info.id,
        resolve_link=partial(resolve_link, objects, chat),
        update_context=None if updates is None else updates.update,
        search_messages=None if search is None else partial(_search_messages, search),
        is_private=lambda: chat.private,
    )


def resolve_link(objects: Objects, chat: Chat, text: str) -> TaskLink:
    """The object of `@41` or `@41 turn 7`. Raises `ToolError`."""
    chat.take_up_newest()
    target = resolve_name(objects, text, beyond=True)
    if not objects.workspace.empty:
        objects.workspace.commit()  # a handle that was given for this must outlive a crash
    if target.slice is not None:
        wanted_content(objects, chat, target)  # refuses a part that there is not
    part = "" if target.slice is None else str(target.slice)
    label = f"{objects.info.id}:@{target.entry.ordinal}"  # whoever reads the task
    return TaskLink(object=target.entry.object, part=part, label=label)


def _search_messages(search: MemorySearch, query: str, limit: int) -> str:
    return search.run({"query": query, "limit": limit, "type": "message"}, "")


def tasks_command(opened: OpenedSession, arguments: str) -> CommandResult:
    """`/tasks`: a view, or what a verb came to. Raises `ToolError` with a text for the user."""
    answer: CommandResult = (
        {"text": _text(opened, arguments)} if arguments else tasks_view(tasks_of(opened))
    )
    return opened.with_status(answer)


def task_choices(opened: OpenedSession, verb: str) -> Iterator[Choice]:
    tasks = opened.facilities.part(SessionTasks)
    if tasks is None or verb not in _ON_ONE:
        return
    board = tasks.work.board
    board.refresh()
    for task in board.all():
        if verb == "show" or task.is_closed == (verb == "open") or task.status == "in_progress":
            yield board.names.name(task.id), task.called


def _text(opened: OpenedSession, arguments: str) -> str:
    verb, _, rest = arguments.partition(" ")
    if verb in ("on", "off"):
        return _choose(opened, wanted=verb == "on")
    tasks, rest = tasks_of(opened), rest.strip()
    if verb not in _NEEDED:
        raise ToolError(f"There is no /tasks {verb}. /tasks help lists what there is.")
    if not rest:
        raise ToolError(_NEEDED[verb])
    try:
        return _run(tasks, verb, rest)
    except ToolError as error:
        raise ToolError(error.for_person("/tasks")) from None


def _run(tasks: SessionTasks, verb: str, rest: str) -> str:
    match verb:
        case "show":
            return tasks.query.run({"action": "show", "id": rest, "full": True})
        case "new":
            return tasks.user_mutate.run({"action": "create", **_new(rest)})
        case "open":
            return tasks.user_mutate.run({"action": "update", "id": rest, "status": "open"})
        case "close":
            return tasks.user_mutate.run({"action": "close", **_closing(rest)})
    return tasks.user_mutate.run({"action": "claim", "id": rest})


def tasks_of(opened: OpenedSession) -> SessionTasks:
    """The project's tasks. Raises `ToolError` if they are off."""
    tasks = opened.facilities.part(SessionTasks)
    if tasks is None:
        raise ToolError("The project's tasks are switched off (tools.tasks in the configuration).")
    return tasks


def tasks_view(tasks: SessionTasks) -> CommandResult:
    board, now_ms = tasks.work.board, tasks.work.now_ms()
    board.refresh()
    ready = board.ready(len(board.all()), now_ms)
    order = {task.id: n for n, task in enumerate([*board.in_progress(), *ready])}
    listed = sorted(board.all(), key=lambda task: (task.is_closed, order.get(task.id, len(order))))
    session = tasks.work.actor.session
    rows = [_task_row(board, task, session, is_ready=task in ready) for task in listed]
    title = counts_line(board, now_ms) if rows else "This project has no tasks yet."
    view: CommandView = {
        "title": f"Tasks: {title}" if rows else title,
        "notes": [],
        "bar": [],
        "heads": ["", "state", "priority", "task"],
        "rows": rows,
        "keys": _KEYS,
        "empty": "n makes one.",
    }
    text = tasks.query.run({"action": "list", "limit": LISTED}) if rows else title
    return {"text": text, "view": view}


def _task_row(board: Board, task: Task, session: str | None, *, is_ready: bool) -> ViewRow:
    name = board.names.name(task.id)
    waits = [board.names.name(each.id) for each in board.open_blockers(task)]
    state = "ready" if is_ready else f"waits for {waits[0]}" if waits else "open"
    if task.is_closed:
        state = "closed"
    elif task.status == "in_progress" and not is_ready:
        state = "claimed here" if task.session == session else f"with {holder(task)}"
    labels = "".join(f" #{label}" for label in task.labels)
    cells = [name, state, f"P{task.priority}", task.called + labels]
    return {"name": name, "cells": [one_line(cell) for cell in cells]}


def _new(rest: str) -> dict[str, Any]:
    """`Fix the login --priority 1 --type bug`."""
    title = " ".join(_OPTION.sub(" ", rest).split())
    if not title:
        raise ToolError(_NEEDED["new"])
    return {"title": title, **{name: value or "?" for name, value in _OPTION.findall(rest)}}


def _closing(rest: str) -> dict[str, Any]:
    """`t-k3f9 It works`, or with a reason first."""
    name, _, words = rest.partition(" ")
    if not words.strip():
        raise ToolError(f"Say what came of it: /tasks close {name} SUMMARY.")
    reason, _, summary = words.strip().partition(" ")
    if reason in _REASONS:
        return {"id": name, "reason": reason, "summary": summary}
    return {"id": name, "summary": words}


def _choose(opened: OpenedSession, *, wanted: bool) -> str:
    if opened.switches is None:
        raise ToolError("This session's project is not known here.")
    tasks_of(opened)
    try:
        opened.switches.choose("tasks", wanted=wanted)
    except OSError as error:
        raise ToolError(f"That cannot be kept: {error.strerror or error}.") from error
    return _ON if wanted else _OFF

"""The tasks of a project as a board, and what each waits for."""

from __future__ import annotations

from collections import Counter
from typing import Any

from foredeck.config import Config
from foredeck.errors import NotFound
from foredeck.names import find_object
from foredeck.sources.projects import project_names
from foredeck.store.clock import now_ms
from foredeck.store.protocol import LocalStore
from foredeck.tasks.board import Board, Task
from foredeck.tasks.wording import as_json
from foredeck.ui.pages import WebPage

CLOSED_SHOWN = 50


def tasks_page(store: LocalStore, config: Config, project: str | None) -> WebPage:
    """The board of a project (default: the one with most tasks)."""
    counts = Counter(str(head.fields.get("project")) for head in store.query("task"))
    names = project_names(store, config) if counts else {}
    projects = [
        {"project": id, "name": names.get(id, id[:12]), "count": count}
        for id, count in counts.most_common()
    ]
    chosen = project or (projects[0]["project"] if projects else None)
    if project is not None and project not in counts:
        raise NotFound(f"no task of a project {project!r} is stored.")
    data: dict[str, Any] = {"projects": projects, "project": chosen, "columns": []}
    if chosen is not None:
        data["columns"] = _columns(store, str(chosen))
    return WebPage("tasks.html", "Tasks", data, "tasks")


def task_page(store: LocalStore, name: str) -> WebPage:
    """One task with its history. Raises `NotFound`."""
    head = find_object(store, name).head
    if head.type != "task":
        raise NotFound(f"{name!r} is not a task.")
    id = head.id
    board = _board(store, str(head.fields.get("project")))
    task = board.get(id)
    if task is None:
        raise NotFound(f"no task {id!r} is stored.")
    data = {
        "task": _described(board, task),
        "waits_for": [_short(board, each) for each in board.open_blockers(task)],
        "holds_up": [_short(board, each) for each in board.blocked_by(id)],
        "parts": [_short(board, each) for each in board.children(id)],
        "versions": [
            {"time_ms": version.time_ms, "status": version.fields.get("status")}
            for version in store.history(id)
        ],
    }
    return WebPage("task.html", task.title, data, "tasks")


def _board(store: LocalStore, project: str) -> Board:
    board = Board(store, project)
    board.refresh()
    return board


def _columns(store: LocalStore, project: str) -> list[dict[str, Any]]:
    board = _board(store, project)
    tasks = board.all()
    ready = {task.id for task in board.ready(len(tasks), now_ms())}
    columns: dict[str, list[Task]] = {"Ready": [], "Waiting": [], "In progress": [], "Closed": []}
    for task in tasks:
        columns[_column(task, ready)].append(task)
    columns["Closed"].sort(key=lambda task: task.closed_ms or 0, reverse=True)
    return [
        {
            "name": name,
            "count": len(listed),
            "tasks": [_described(board, t) for t in listed[:CLOSED_SHOWN]],
        }
        for name, listed in columns.items()
    ]


def _column(task: Task, ready: set[str]) -> str:
    if task.is_closed:
        return "Closed"
    if task.id in ready:
        return "Ready"
    return "In progress" if task.status == "in_progress" else "Waiting"


def _described(board: Board, task: Task) -> dict[str, Any]:
    blockers = [_short(board, each) for each in board.open_blockers(task)]
    return {**as_json(board, task, now_ms()), "waits_for": blockers if not task.is_closed else []}


def _short(board: Board, task: Task) -> dict[str, str]:
    return {"id": task.id, "name": board.names.name(task.id), "title": task.title}

"""What is kept beside the chat: tasks as a board, memory, and notes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from foredeck.config import Config
from foredeck.errors import NotFound
from foredeck.lookup.reader import note_rule
from foredeck.memory.describing import MemoryDesk, audit_steps, memory_desk
from foredeck.memory.entry import MemoryEntry
from foredeck.model.figures import counted
from foredeck.notes.graph import Graph
from foredeck.sources.projects import project_names
from foredeck.store.clock import now_ms
from foredeck.store.store import Store
from foredeck.tasks.board import Board, Task
from foredeck.tasks.wording import as_json
from foredeck_inspector.pages import Asked, WebPage, link
from foredeck_inspector.tables import Column, Row, Table

CLOSED_SHOWN = 50
NOTES_SHOWN = 500
_NOTES = (
    Column("title", "Title", link="address"),
    Column("kind", "Kind"),
    Column("tags_said", "Tags"),
    Column("path", "File"),
)


def tasks_page(asked: Asked) -> WebPage:
    """A project's board (default: the one with most tasks)."""
    store, project = asked.store, asked.values.get("project")
    counts = Counter(str(head.fields.get("project")) for head in store.query("task"))
    names = project_names(store, asked.reader.config) if counts else {}
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


def task_details(store: Store, id: str) -> dict[str, Any]:
    """A task, with what it waits for and what waits for it. Raises `NotFound`."""
    head = store.head(id)
    board = _board(store, "" if head is None else str(head.fields.get("project")))
    task = board.get(id)
    if task is None:
        raise NotFound(f"no task {id!r} is stored.")
    return {
        **_described(board, task),
        "waits_for": [_short(board, each) for each in board.open_blockers(task)],
        "holds_up": [_short(board, each) for each in board.blocked_by(id)],
        "parts": [_short(board, each) for each in board.children(id)],
    }


def _board(store: Store, project: str) -> Board:
    board = Board(store, project)
    board.refresh()
    return board


def _columns(store: Store, project: str) -> list[dict[str, Any]]:
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


# What is remembered: the inbox, what holds everywhere and in projects, in sessions, findings


PLACES = ("global", "session", "findings")


def memory_page(asked: Asked) -> WebPage:
    """What is kept or proposed."""
    desk, values = desk_of(asked.store, asked.reader.config), asked.values
    place, contains, tag = values.get("place"), values.get("contains", ""), values.get("tag")
    entries = [entry for entry in desk.acts.all() if entry.document.state in ("kept", "proposed")]
    shown = [entry for entry in entries if _is_asked(entry, place, contains, tag)]
    described = [desk.describe.json(entry) for entry in shown]
    waiting = [entry for entry in described if entry["state"] == "proposed"]
    counts = {name: sum(e.document.place == name for e in entries) for name in PLACES}
    data = {
        "place": place,
        "places": [{"place": name, "count": counts[name]} for name in PLACES],
        "contains": contains,
        "tag": tag,
        "tags": sorted({each for entry in entries for each in entry.document.tags}),
        "total": len(entries),
        "inbox": waiting,
        "entries": [entry for entry in described if entry["state"] != "proposed"],
    }
    return WebPage("memory.html", "Memory", data, "memory")


def entry_details(store: Store, config: Config, id: str) -> dict[str, Any]:
    desk = desk_of(store, config)
    entry = desk.acts.find(id)
    return {
        **desk.describe.json(entry),
        "details": desk.describe.details(entry),
        "steps": audit_steps(desk.acts, entry),
        "descendants": [desk.describe.json(each) for each in desk.acts.descendants(entry.id)],
    }


def desk_of(store: Store, config: Config) -> MemoryDesk:
    return memory_desk(store, config, str(Path.home()))


def _is_asked(entry: MemoryEntry, place: str | None, contains: str, tag: str | None) -> bool:
    document = entry.document
    if (place and document.place != place) or (tag and tag not in document.tags):
        return False
    words = f"{document.fact} {document.native} {document.category}".casefold()
    return contains.casefold() in words


# Notes


def notes_page(asked: Asked) -> WebPage:
    """Notes by title, and broken links."""
    with asked.reader.graph(asked.store) as (graph, behind):
        return _notes(asked, graph, behind)


def _notes(asked: Asked, graph: Graph, behind: str) -> WebPage:
    rule, orphans = note_rule(asked.reader.config), graph.orphans()
    tag = asked.values.get("tag", "")
    rows: list[Row] = [
        {
            **node.as_json(),
            "address": link("objects", node.id),
            "kind": "note" if rule.is_note(node.path or "", kind) else "other",
            "orphan": node.id in orphans,
            "tags": graph.tags_of(node.id),
        }
        for node, kind in graph.markdown(tag or None)
    ]
    for row in rows:
        row["kind"] += ", nothing refers to it" if row["orphan"] else ""
        row["tags_said"] = " ".join(f"#{name}" for name in row["tags"])
    listed = Table("notes", counted(len(rows), "Markdown file"), _NOTES, rows)
    data = {
        "tag": tag,
        "tags": [{"tag": name, "count": count} for name, count in graph.tags()],
        "notes": listed.arranged(asked.values),
        "broken": [
            {
                "object": each.source.id,
                "title": each.source.title,
                "target": each.reference.whole,
                "candidates": [node.as_json() for node in each.candidates],
            }
            for each in list(graph.unresolved())[:NOTES_SHOWN]
        ],
        "behind": behind,
    }
    return WebPage("notes.html", "Notes", data, "notes")

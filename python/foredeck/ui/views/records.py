"""What is kept beside the chat: tasks as a board, memory, and what was noted of a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from foredeck.config import Config
from foredeck.errors import ForedeckError, NotFound
from foredeck.memory.describing import MemoryDesk, audit_steps
from foredeck.memory.entry import MemoryEntry, MemoryRefused
from foredeck.memory.keeping import Kept
from foredeck.names import find_object
from foredeck.observations.reading import Observation, Reflection, stored_notes
from foredeck.sources.projects import project_names
from foredeck.store.clock import now_ms
from foredeck.store.protocol import LocalStore, Store
from foredeck.tasks.board import Board, Task
from foredeck.tasks.wording import as_json
from foredeck.ui.pages import WebPage
from foredeck.ui.views.sessions import described, found_session

CLOSED_SHOWN = 50
_FIELDS = (
    *("mode", "priority", "category", "first_turn", "last_turn", "files", "remark_count"),
    *("current_task", "suggestion", "observed_by", "model", "is_edited", "dropped"),
)


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


# What is remembered: the inbox, what holds everywhere and in projects, in sessions, findings


PLACES = ("global", "session", "findings")


def memory_page(
    desk: MemoryDesk, place: str | None, contains: str, tag: str | None, *, edits: bool
) -> WebPage:
    """What is kept or proposed; `place`, `contains` and `tag` choose among it. `edits`: whether it
    can be changed here."""
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
        "edits": edits,
    }
    return WebPage("memory.html", "Memory", data, "memory")


def memory_entry_page(desk: MemoryDesk, name: str, *, edits: bool) -> WebPage:
    """One entry, with all that it came from. Raises `NotFound` or `ForedeckError`."""
    entry = desk.acts.find(name)
    data = {
        "entry": desk.describe.json(entry),
        "details": desk.describe.details(entry),
        "steps": audit_steps(desk.acts, entry),
        "descendants": [desk.describe.json(each) for each in desk.acts.descendants(entry.id)],
        "edits": edits,
    }
    return WebPage("memory_entry.html", entry.document.fact[:80], data, "memory")


def change_memory(
    desk: MemoryDesk, act: str, ids: Sequence[str]
) -> tuple[int, list[str], list[str]]:
    """Do the same to several entries, as their user: how many that was done to, why not to the
    others, and what left to make room. Raises `NotFound` for an act that there is not."""
    acts: Mapping[str, Callable[[str], object]] = {
        "accept": desk.acts.accept,
        "refuse": desk.acts.refuse,
        "demote": desk.acts.demote,
        "delete": desk.acts.delete,
        "pin-preference": lambda id: desk.acts.pin(id, "preference"),
        "pin-decision": lambda id: _pin_decision(desk, id),
    }
    if act not in acts:
        raise NotFound(f"there is no act {act!r}: {', '.join(acts)}.")
    refused, gone = [], []
    for id in ids:
        try:
            done = acts[act](desk.acts.find(id).id)
            gone += [desk.describe.line(e) for e in done.gone] if isinstance(done, Kept) else []
        except ForedeckError as error:
            refused.append(str(error))
    return len(ids) - len(refused), refused, gone


def _pin_decision(desk: MemoryDesk, id: str) -> Kept:
    """A decision holds in the project in which it was made."""
    project = desk.acts.find(id).document.project
    if project is None:
        raise MemoryRefused(
            "In which project that was decided is not known: pin it there, with "
            "`foredeck memory pin`."
        )
    return desk.acts.pin(id, "decision", project)


def _is_asked(entry: MemoryEntry, place: str | None, contains: str, tag: str | None) -> bool:
    document = entry.document
    if (place and document.place != place) or (tag and tag not in document.tags):
        return False
    words = f"{document.fact} {document.native} {document.category}".casefold()
    return contains.casefold() in words


# What was noted of a session


def observations_page(store: Store, name: str) -> WebPage:
    """Reflections and observations of a session, oldest first. Raises `NotFound`."""
    session, head = found_session(store, name)
    stored = stored_notes(store, [session])
    reflections = sorted(stored.reflections, key=lambda one: one.document.generation)
    data = {
        **described(store, session, head),
        "reflections": [_reflection(one) for one in reflections],
        "observations": [_observation(one) for one in stored.observations],
        "covered_tokens": sum(one.document.covered_tokens for one in stored.observations),
        "tokens": sum(one.tokens for one in stored.observations),
    }
    return WebPage("observations.html", "Observations", data, "sessions")


def _observation(one: Observation) -> dict[str, Any]:
    return {
        **_common(one),
        "covered_tokens": one.document.covered_tokens,
        "unfounded": sorted({name for remark in one.document.remarks for name in remark.unfounded}),
    }


def _reflection(one: Reflection) -> dict[str, Any]:
    return {
        **_common(one),
        "level": one.document.level,
        "generation": one.document.generation,
        "observations": list(one.document.observations),
        "input_tokens": one.document.input_tokens,
    }


def _common(one: Observation | Reflection) -> dict[str, Any]:
    fields = {name: one.head.fields.get(name) for name in _FIELDS}
    text = None if one.is_deleted else one.text
    return {"object": one.id, "text": text, "tokens": one.tokens, **fields}

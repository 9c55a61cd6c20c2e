"""Tasks as text for models and people, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from foredeck.model.figures import some_of
from foredeck.model.identity import TASK, ShortNames
from foredeck.model.quoting import block, one_line
from foredeck.model.tasks import TaskDocument
from foredeck.store.clock import now_ms
from foredeck.store.store import Store
from foredeck.tasks.board import Board, Task, holder, moment, until_of

_SUMMARY = 120
_MOST_NAMED = 10
_SAID_OF = (
    ("supersedes", "supersedes", "superseded by"),
    ("duplicates", "duplicates", "duplicated by"),
    ("related", "related to", "related to"),
)
"""As said of its owner, and of its object."""

_AS_STORED = (
    *("labels", "assignee", "session", "claimed_ms", "lease_ms", "created_ms", "updated_ms"),
    *("closed_ms", "close_reason", "summary"),
)
"""Fields with the same name in JSON."""


def line(board: Board, task: Task, now_ms: int) -> str:
    kind = "" if task.task_type == "task" else f" {task.task_type}"
    labels = "".join(f" #{one_line(label)}" for label in task.labels)
    head = f"{board.names.name(task.id)} P{task.priority}{kind}: {task.called}{labels}"
    return head + _state(board, task, now_ms)


def any_line(board: Board, task: Task, now_ms: int) -> str:
    if not task.is_closed:
        return line(board, task, now_ms)
    day = "" if task.closed_ms is None else f" {moment(task.closed_ms)[:10]}"
    summary = f": {clipped(task.summary, _SUMMARY)}" if task.summary else ""
    return f"{board.names.name(task.id)} {task.close_reason}{day}: {task.called}{summary}"


def _state(board: Board, task: Task, now_ms: int) -> str:
    if task.status == "in_progress":
        if task.is_held(now_ms):
            return f" (in progress: {holder(task)})"
        return f" (the claim of {holder(task)} has ended)"
    waits = [board.names.name(t.id) for t in board.open_blockers(task)]
    return f" (waits for {some_of(waits, _MOST_NAMED)})" if waits else ""


def details(
    board: Board,
    task: Task,
    description: str | None,
    now_ms: int,
    *,
    said: Sequence[str] = (),
    full: bool = False,
) -> str:
    """A task in full; after seven days a summary replaces the description, unless `full`."""
    kind = "" if task.task_type == "task" else f" {task.task_type}"
    lines = [f"{board.names.name(task.id)} P{task.priority}{kind} {task.status}: {task.called}"]
    lines += _status_lines(task, now_ms)
    if task.labels:
        lines.append(f"labels: {', '.join(map(one_line, task.labels))}")
    lines += _connections(board, task, now_ms)
    if task.summary:
        lines.append(f"summary:{block(task.summary.strip())}")
    if description and (full or task.level(now_ms) == 0):
        lines.append(f"description:{block(description.strip())}")
    elif description:
        lines.append(f"description: {len(description)} chars, not shown; show with full=true")
    if task.metadata:
        lines.append(f"metadata: {one_line(json.dumps(task.metadata, ensure_ascii=False))}")
    if task.links:
        links = [one_line(f"{k.label or k.object} {k.part}".rstrip()) for k in task.links]
        lines.append(f"linked: {', '.join(links)}")
    if said:
        lines.append(f"worked on in: {', '.join(map(one_line, said))}")
    return "\n".join(lines)


def _status_lines(task: Task, now_ms: int) -> list[str]:
    if task.is_closed and task.closed_ms is not None:
        return [f"closed {moment(task.closed_ms)}: {task.close_reason}"]
    if task.status != "in_progress":
        return []
    if not task.is_held(now_ms):
        return [f"the claim of {holder(task)} has ended: it can be claimed"]
    until = until_of(task)
    return [f"claimed by {holder(task)}{until}"]


def _connections(board: Board, task: Task, now_ms: int) -> list[str]:
    groups: list[tuple[str, Iterable[Task]]] = [
        ("part of", _known(board, task.on("parent-child"))),
        ("parts", board.children(task.id)),
        ("waits for", _known(board, task.on("blocks"))),
        ("blocks", board.blocked_by(task.id)),
    ]
    for relation, phrase, said_back in _SAID_OF:
        groups.append((phrase, _known(board, task.on(relation))))
        groups.append((said_back, board.referring(task.id, relation)))
    lines = []
    for phrase, tasks in groups:
        lines += [f"{phrase}: {any_line(board, other, now_ms)}" for other in tasks]
    return lines


def _known(board: Board, ids: Iterable[str]) -> list[Task]:
    return [task for id in ids if (task := board.get(id)) is not None]


def clipped(text: str, limit: int) -> str:
    one = one_line(" ".join(text.split()))
    return one if len(one) <= limit else one[: limit - 3].rstrip() + "..."


def counts_line(board: Board, now_ms: int) -> str:
    """`2 ready, 1 blocked, 1 in progress.`"""
    ready, blocked = board.counts(now_ms)
    claimed = sum(task.is_held(now_ms) for task in board.in_progress())
    more = f", {claimed} in progress" if claimed else ""
    return f"{ready} ready, {blocked} blocked{more}."


def as_json(board: Board, task: Task, now_ms: int) -> dict[str, Any]:
    """A task's fields and what follows from others, without description."""
    return {
        "id": task.id,
        "name": board.names.name(task.id),
        **{name: getattr(task, name) for name in ("title", "status", "priority")},
        "type": task.task_type,
        **{name: getattr(task, name) for name in _AS_STORED},
        "compaction_level": task.level(now_ms),
        "dependencies": [d.model_dump() for d in task.dependencies],
        "links": [link.model_dump() for link in task.links],
        "metadata": task.metadata,
        "blocked_by": [t.id for t in board.open_blockers(task)] if not task.is_closed else [],
        "parts": [t.id for t in board.children(task.id)],
        "generator": task.provenance.generator,
    }


def task_by_name(store: Store, name: str) -> str | None:
    """A task in full, by its short name or id; None if no single one has it."""
    heads = {head.id: head for head in store.query("task")}
    ids = ShortNames(TASK, heads).find(name)
    if len(ids) != 1:
        return None
    id = ids[0]
    board = Board(store, heads[id].view(TaskDocument).project)
    board.refresh()
    task, document = board.get(id), store.get(id, TaskDocument)
    if task is None or document is None:
        return None
    return details(board, task, document.content, now_ms(), full=True)

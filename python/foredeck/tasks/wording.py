"""Tasks as lines of text: for the model, and for people on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from foredeck.model.quoting import block, one_line
from foredeck.model.tasks import TaskLink
from foredeck.tasks.board import Board
from foredeck.tasks.claiming import holder, moment, until_of
from foredeck.tasks.task import Task

_SUMMARY = 120
_MOST_NAMED = 10
_SAID_OF = (
    ("supersedes", "supersedes", "superseded by"),
    ("duplicates", "duplicates", "duplicated by"),
    ("related", "related to", "related to"),
)
"""A relation as it is said of the task that has it, and of the one that it names."""


def line(board: Board, task: Task, now_ms: int) -> str:
    """A task in one line: `t-k3f9 P1 bug: Fix the login redirect #auth`."""
    kind = "" if task.task_type == "task" else f" {task.task_type}"
    labels = "".join(f" #{one_line(label)}" for label in task.labels)
    head = f"{board.names.name(task.id)} P{task.priority}{kind}: {task.called}{labels}"
    return head + _state(board, task, now_ms)


def closed_line(board: Board, task: Task) -> str:
    """A closed task in one line, with what came of it."""
    day = "" if task.closed_ms is None else f" {moment(task.closed_ms)[:10]}"
    summary = f": {clipped(task.summary, _SUMMARY)}" if task.summary else ""
    return f"{board.names.name(task.id)} {task.close_reason}{day}: {task.called}{summary}"


def any_line(board: Board, task: Task, now_ms: int) -> str:
    """A task in one line, whatever its status."""
    return closed_line(board, task) if task.is_closed else line(board, task, now_ms)


def _state(board: Board, task: Task, now_ms: int) -> str:
    if task.status == "in_progress":
        if task.is_held(now_ms):
            return f" (in progress: {holder(task)})"
        return f" (the claim of {holder(task)} has ended)"
    waits = [board.names.name(t.id) for t in board.open_blockers(task)]
    return f" (waits for {_few(waits)})" if waits else ""


def _few(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def details(
    board: Board,
    task: Task,
    description: str | None,
    now_ms: int,
    *,
    said: Sequence[str] = (),
    full: bool = False,
) -> str:
    """All of a task. `said`: where something was said while it was active. After seven days the
    summary replaces the description of a closed one, unless it is wanted in full."""
    kind = "" if task.task_type == "task" else f" {task.task_type}"
    found = [f"{board.names.name(task.id)} P{task.priority}{kind} {task.status}: {task.called}"]
    found += _status_lines(task, now_ms)
    if task.labels:
        found.append(f"labels: {', '.join(map(one_line, task.labels))}")
    found += _connections(board, task, now_ms)
    if task.summary:
        found.append(f"summary:{block(task.summary.strip())}")
    if description and (full or task.level(now_ms) == 0):
        found.append(f"description:{block(description.strip())}")
    elif description:
        found.append(f"description: {len(description)} chars, put away; show with full=true")
    if task.links:
        found.append(f"linked: {', '.join(map(_link_name, task.links))}")
    if said:
        found.append(f"worked on in: {', '.join(map(one_line, said))}")
    return "\n".join(found)


def _link_name(link: TaskLink) -> str:
    """What opens a linked message or object, whoever reads it. Earlier versions called it by its
    handle in the session that linked it, which means another object elsewhere."""
    name = link.object if link.label.startswith("@") or not link.label else link.label
    return one_line(f"{name} {link.part}".rstrip())


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
    for relation, said, said_back in _SAID_OF:
        groups.append((said, _known(board, task.on(relation))))
        groups.append((said_back, board.referring(task.id, relation)))
    found = []
    for said, tasks in groups:
        found += [f"{said}: {any_line(board, other, now_ms)}" for other in tasks]
    return found


def _known(board: Board, ids: Iterable[str]) -> list[Task]:
    return [task for id in ids if (task := board.get(id)) is not None]


def counts_line(board: Board, now_ms: int) -> str:
    """How many tasks can be begun, and how many wait: `2 ready, 1 blocked, 1 in progress.`"""
    ready, blocked = board.counts(now_ms)
    held = sum(task.is_held(now_ms) for task in board.in_progress())
    more = f", {held} in progress" if held else ""
    return f"{ready} ready, {blocked} blocked{more}."


def clipped(text: str, limit: int) -> str:
    """A text as one line of at most `limit` characters."""
    one = one_line(" ".join(text.split()))
    return one if len(one) <= limit else one[: limit - 3].rstrip() + "..."

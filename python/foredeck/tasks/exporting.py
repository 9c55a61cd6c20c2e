"""All that is known of tasks, for programs and for people: JSON, and a Markdown page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from textwrap import indent
from typing import Any

from foredeck.tasks.board import Board
from foredeck.tasks.claiming import moment
from foredeck.tasks.task import Task
from foredeck.tasks.wording import line

_HEADINGS = (("in_progress", "In progress"), ("open", "Open"), ("closed", "Closed"))


def as_json(board: Board, task: Task, now_ms: int) -> dict[str, Any]:
    """A task's fields, and what follows from others; without its description."""
    level = task.level(now_ms)
    return {
        "id": task.id,
        "name": board.names.name(task.id),
        "title": task.title,
        "status": task.status,
        "priority": task.priority,
        "type": task.task_type,
        "labels": task.labels,
        "assignee": task.assignee,
        "session": task.session,
        "claimed_ms": task.claimed_ms,
        "lease_ms": task.lease_ms,
        "created_ms": task.created_ms,
        "updated_ms": task.updated_ms,
        "closed_ms": task.closed_ms,
        "close_reason": task.close_reason,
        "summary": task.summary,
        "compaction_level": level,
        "dependencies": [d.model_dump() for d in task.dependencies],
        "links": [link.model_dump() for link in task.links],
        "metadata": task.metadata,
        "blocked_by": [t.id for t in board.open_blockers(task)] if not task.is_closed else [],
        "parts": [t.id for t in board.children(task.id)],
        "generator": task.provenance.generator,
    }


def as_markdown(
    board: Board,
    tasks: Iterable[Task],
    description_of: Callable[[Task], str | None],
    now_ms: int,
    title: str,
) -> str:
    """A page with all of these tasks. It is for reading: nothing reads it back."""
    listed = list(tasks)
    lines = [f"# Tasks of {title}", ""]
    for status, heading in _HEADINGS:
        if of_status := [task for task in listed if task.status == status]:
            lines += [f"## {heading}", ""]
            for task in of_status:
                lines += _entry(board, task, description_of(task), now_ms)
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _entry(board: Board, task: Task, description: str | None, now_ms: int) -> list[str]:
    box = "x" if task.is_closed else " "
    lines = [f"- [{box}] {line(board, task, now_ms)}"]
    if task.is_closed and task.closed_ms is not None:
        summary = f": {indent(task.summary, '  ').strip()}" if task.summary else ""
        lines.append(f"  {task.close_reason} on {moment(task.closed_ms)[:10]}{summary}")
    if description and task.level(now_ms) == 0:
        lines.append(indent(description.strip(), "  "))
    return lines

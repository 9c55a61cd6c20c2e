"""The model's tool `task-query`: ready, show, list, search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from foredeck.errors import ToolError
from foredeck.tasks.claiming import is_own
from foredeck.tasks.inputs import ToolInput
from foredeck.tasks.matching import TaskMatcher
from foredeck.tasks.task import Task
from foredeck.tasks.wording import any_line, counts_line, details, line
from foredeck.tasks.work import TaskWork

ACTIONS = ("ready", "show", "list", "search")
STATUSES = ("open", "in_progress", "closed")
_ARCHIVED = 2
_READY, _FOUND, _LISTED, _MOST = 5, 3, 20, 100

SearchMessages = Callable[[str, int], str]
"""What was said about some words, for the model: a query, and how many hits at most."""

NO_TASKS = "This project has no tasks. Plan with task-mutate create."


class TaskQuery:
    """Answers questions about the project's tasks."""

    name = "task-query"

    def __init__(self, work: TaskWork, search_messages: SearchMessages | None = None) -> None:
        self._work = work
        self._search_messages = search_messages
        self._matcher = TaskMatcher(work)

    def run(self, input: Mapping[str, Any], call: str = "") -> str:  # noqa: ARG002
        """The text of the result. Raises `ToolError`."""
        given = ToolInput(self.name, input)
        action = given.action(ACTIONS)
        self._work.board.refresh()
        settled = settled_line(self._work)
        answer: str = getattr(self, f"_{action}")(given)
        return settled + answer

    def _ready(self, given: ToolInput) -> str:
        board, now = self._work.board, self._work.now_ms()
        tasks = board.ready(given.number("limit", _READY, _MOST), now)
        own = [task for task in board.in_progress() if is_own(task, self._work.actor)]
        lines = [f"You work on {self._work.name(task)}: {task.called}" for task in own]
        lines.append(counts_line(board, now))
        lines += [line(board, task, now) for task in tasks]
        if not tasks and not board.all():
            lines = [NO_TASKS]
        return "\n".join(lines)

    def _show(self, given: ToolInput) -> str:
        work = self._work
        task = work.find(given.needed("id", '{"action": "show", "id": "t-k3f9"}'))
        full = given.flag("full", default=False)
        said = work.said_for(task)
        text = work.description(task)
        return details(work.board, task, text, work.now_ms(), said=said, full=full)

    def _list(self, given: ToolInput) -> str:
        board, now = self._work.board, self._work.now_ms()
        status = given.choice("status", ("any", *STATUSES), "any")
        wanted = [
            task
            for task in board.all()
            if status in (task.status, "any") and (status != "any" or task.level(now) < _ARCHIVED)
        ]
        wanted.sort(key=lambda task: _closed_last(task))
        limit = given.number("limit", _LISTED, _MOST)
        lines = [counts_line(board, now), *(any_line(board, t, now) for t in wanted[:limit])]
        if not wanted:
            lines.append("No such task.")
        if len(wanted) > limit:
            lines.append(f"and {len(wanted) - limit} more: give a status, a limit, or search")
        return "\n".join(lines)

    def _search(self, given: ToolInput) -> str:
        query = given.needed("query", '{"action": "search", "query": "login"}')
        limit = given.number("limit", _FOUND, _MOST)
        found = self._matcher.find(query)
        board, now = self._work.board, self._work.now_ms()
        lines = [f"{len(found)} tasks found." if len(found) != 1 else "1 task found."]
        lines += [any_line(board, task, now) for task in found[:limit]]
        if given.flag("includeMessages", default=False):
            if self._search_messages is None:
                raise ToolError("Messages cannot be searched here: leave out includeMessages.")
            lines.append(self._search_messages(query, limit))
        return "\n".join(lines)


def settled_line(work: TaskWork) -> str:
    """What has become of a provisional claim, if that is new; with a line end."""
    settle(work)
    news = "".join(f"{line}\n" for line in work.news)
    work.news.clear()
    return news


def settle(work: TaskWork) -> None:
    """Bring a provisional claim to its end, if the database is back, and note that as news."""
    settled = work.settle()
    if settled is None:
        return
    claim = f"The database is back: your provisional claim of {work.name(settled.task)}"
    said = f"{claim} holds." if settled.because is None else f"{claim} is lost. {settled.because}"
    work.news.append(said)


def _closed_last(task: Task) -> tuple[bool, int]:
    return task.is_closed, -(task.closed_ms or 0)

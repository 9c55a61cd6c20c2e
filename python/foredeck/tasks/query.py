"""The model's tool `task-query`: ready, show, list, search; and how tasks are found by words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from foredeck.errors import ToolError
from foredeck.model.names import WORD, humps
from foredeck.tasks.claiming import is_own
from foredeck.tasks.inputs import ToolInput
from foredeck.tasks.task import Task
from foredeck.tasks.wording import any_line, counts_line, details, line
from foredeck.tasks.work import TaskWork

ACTIONS = ("ready", "show", "list", "search")
STATUSES = ("open", "in_progress", "closed")
_ARCHIVED = 2
_READY, _FOUND, _LISTED, _MOST = 5, 3, 20, 100

_TITLE, _LABEL, _SUMMARY, _DESCRIPTION = 8, 6, 3, 2
"""What a word weighs, by where it is."""
_WHOLE = 2
"""How many times as much as a word that only begins like it."""
_NAME = re.compile(r"t-[0-9a-z]{4,}")

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


class TaskMatcher:
    """Ranks tasks by how many words of a query they have, then by where, newer ones first."""

    def __init__(self, work: TaskWork) -> None:
        self._work = work
        self._descriptions: dict[str, tuple[str, frozenset[str]]] = {}
        """By task: the version that was read, and its words."""

    def find(self, query: str) -> list[Task]:
        """The tasks that have all words of `query`, or some where none has all; best first."""
        words = sorted(_words(query))
        ranked = [(self._rank(task, words), task) for task in self._work.board.all()]
        best = max((rank[0] for rank, _ in ranked), default=0)
        found = [(rank, task) for rank, task in ranked if best and rank[0] == best]
        found.sort(key=lambda pair: (-pair[0][1], pair[1].is_closed, -pair[1].updated_ms))
        named = self._named(query)
        return [*named, *(task for _, task in found if task not in named)]

    def _named(self, query: str) -> list[Task]:
        board = self._work.board
        found = (board.names.find(name) for name in _NAME.findall(query.lower()))
        ids = (ids[0] for ids in found if len(ids) == 1)
        return [task for id in ids if (task := board.get(id)) is not None]

    def _rank(self, task: Task, words: list[str]) -> tuple[int, int]:
        """How many of the words it has, and how much these weigh."""
        fields = (
            (_words(task.title), _TITLE),
            (_words(" ".join(task.labels)), _LABEL),
            (_words(task.summary or ""), _SUMMARY),
            (self._description(task), _DESCRIPTION),
        )
        weights = [max(_weight(word, there, w) for there, w in fields) for word in words]
        return sum(weight > 0 for weight in weights), sum(weights)

    def _description(self, task: Task) -> frozenset[str]:
        known = self._descriptions.get(task.id)
        if known is None or known[0] != task.token:
            known = task.token, _words(self._work.description(task) or "")
            self._descriptions[task.id] = known
        return known[1]


def _weight(word: str, there: frozenset[str], weight: int) -> int:
    if word in there:
        return weight * _WHOLE
    return weight if any(other.startswith(word) for other in there) else 0


def _words(text: str) -> frozenset[str]:
    found = WORD.findall(text)
    return frozenset(w.lower() for w in found) | {p for w in found for p in humps(w)}

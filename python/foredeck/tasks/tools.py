"""The tools `task-query` and `task-mutate`: input and effects."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, get_args

from foredeck.errors import ToolError
from foredeck.model.quoting import one_line
from foredeck.model.tasks import CloseReason, Relation, TaskLink, TaskType
from foredeck.tasks.board import Task, is_own, until_of
from foredeck.tasks.wording import any_line, counts_line, details, line
from foredeck.tasks.work import NewTask, TaskMatcher, TaskWork

T = TypeVar("T", bound=str)

LONGEST_TITLE, LONGEST_TEXT = 500, 20_000
MOST_LABELS, LONGEST_LABEL = 20, 60
TYPES: Sequence[TaskType] = get_args(TaskType)
REASONS: Sequence[CloseReason] = get_args(CloseReason)
RELATIONS: Sequence[Relation] = get_args(Relation)

_YES, _NO = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0", "remove"})
_USUAL, _LOWEST = 2, 4
"""The usual priority, and the lowest."""
_OTHER_WORDS = {
    "done": "completed",
    "complete": "completed",
    "fixed": "completed",
    "won't fix": "wontfix",
    "cancelled": "wontfix",
    "blocked-by": "blocks",
    "blocked_by": "blocks",
    "depends": "blocks",
    "parent": "parent-child",
    "parent_child": "parent-child",
    "child": "parent-child",
    "duplicate-of": "duplicates",
    "relates": "related",
}
"""Models' words for choices."""
_ALSO = {
    "id": ("taskId", "task_id", "task"),
    "dependsOn": ("depends_on", "dependsOnId", "blockedBy"),
    "type": ("relation", "depType"),
    "messageId": ("message_id", "message", "handle", "target"),
    "includeMessages": ("include_messages",),
}
"""Models' names for fields."""


class ToolInput:
    """The fields of one tool call."""

    def __init__(self, tool: str, fields: Mapping[str, Any]) -> None:
        self._tool = tool
        self._fields = fields

    def action(self, actions: Sequence[str]) -> str:
        """The requested action. Raises `ToolError`."""
        action = str(self._fields.get("action") or "").strip().lower()
        if action not in actions:
            problem = f"no action {action!r}" if action else "an action is needed"
            raise ToolError(f"{self._tool}: {problem}. Actions: {', '.join(actions)}.")
        return action

    def has(self, name: str) -> bool:
        return self._value(name) is not None

    def is_empty(self, name: str) -> bool:
        """Whether a field is given, but empty."""
        return self._fields.get(name) == ""

    def text(self, name: str, *, limit: int = LONGEST_TEXT) -> str | None:
        """A text, if given. Raises `ToolError` if too long."""
        value = self._value(name)
        if value is None:
            return None
        text = str(value).strip()
        if len(text) > limit:
            raise ToolError(f"{name} has {len(text)} characters; {limit} are allowed.")
        return text or None

    def needed(self, name: str, example: str, *, limit: int = LONGEST_TEXT) -> str:
        """As `text`, but required. `example` shows a whole input."""
        text = self.text(name, limit=limit)
        if text is None:
            action = self._fields.get("action") or self._tool
            raise ToolError(f"{action} needs {name}: {example}")
        return text

    def title(self, example: str) -> str:
        """The title on one line."""
        return " ".join(self.needed("title", example, limit=LONGEST_TITLE).split())

    def number(self, name: str, default: int, most: int) -> int:
        """A number from 1 to `most`, capped."""
        value = self._value(name)
        try:
            number = default if value is None else int(value)
        except (TypeError, ValueError):
            raise ToolError(f"{name} is a number, not {value!r}.") from None
        return min(max(number, 1), most)

    def flag(self, name: str, *, default: bool) -> bool:
        """A yes or no."""
        value = self._value(name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        text = str(value).strip().lower()
        if text not in _YES | _NO:
            raise ToolError(f"{name} is true or false, not {value!r}.")
        return text in _YES

    def priority(self) -> int:
        value = self._value("priority")
        if value is None:
            return _USUAL
        text = str(value).strip().lower().removeprefix("p").removesuffix(".0")
        if not text.isdecimal() or int(text) > _LOWEST:
            raise ToolError(f"priority is 0 (most urgent) to {_LOWEST}, not {value!r}.")
        return int(text)

    def labels(self) -> tuple[str, ...]:
        """Unique labels without `#`."""
        labels = tuple(dict.fromkeys(t.lstrip("#") for t in self.texts("labels")))
        if len(labels) > MOST_LABELS or any(len(label) > LONGEST_LABEL for label in labels):
            raise ToolError(f"labels: {MOST_LABELS} at most, of {LONGEST_LABEL} characters each.")
        return tuple(" ".join(label.split()) for label in labels if label)

    def object(self, name: str) -> dict[str, Any]:
        """A JSON object, or its text."""
        value = self._value(name)
        if isinstance(value, str):
            with suppress(ValueError):
                value = json.loads(value)
        if not isinstance(value, dict):
            raise ToolError(f"{name} is a JSON object, not {value!r}.")
        if len(json.dumps(value)) > LONGEST_TEXT:
            raise ToolError(f"{name} is too long: {LONGEST_TEXT} characters are allowed.")
        return value

    def texts(self, name: str) -> list[str]:
        value = self._value(name)
        if value is None:
            return []
        parts = value if isinstance(value, list) else str(value).split(",")
        return [text for part in parts if (text := str(part).strip())]

    def choice(self, name: str, choices: Sequence[T], default: T) -> T:
        """One of some words."""
        value = self._value(name)
        if value is None:
            return default
        word = str(value).strip().lower()
        word = _OTHER_WORDS.get(word, word)
        for choice in choices:
            if choice == word:
                return choice
        raise ToolError(f"{name} is one of {', '.join(choices)}, not {value!r}.")

    def _value(self, name: str) -> Any:
        for alias in (name, *_ALSO.get(name, ())):
            value = self._fields.get(alias)
            if value is not None and value != "":
                return value
        return None


QUESTIONS = ("ready", "show", "list", "search")
STATUSES = ("open", "in_progress", "closed")
_ARCHIVED = 2
_READY, _FOUND, _LISTED, _MOST = 5, 3, 20, 100


SearchMessages = Callable[[str, int], str]
"""Query, and most hits."""

NO_TASKS = "This project has no tasks. Plan with task-mutate create."
PRIVATE = (
    "This session is private: here a task can only be claimed, since the project's other sessions "
    "read its tasks and its page. The user can change tasks with /tasks."
)
OWN_PAGE = 'The session\'s own page can be written: update_context with scope "thread".'

CHANGES = ("create", "claim", "close", "dep", "link", "update", "update_context")
SCOPES = ("resource", "thread")
_CREATE = '{"action": "create", "title": "Fix the login redirect"}'
_CLAIM = '{"action": "claim", "id": "t-k3f9"}'
_UPDATE = '{"action": "update", "id": "t-k3f9", "priority": 1}'
_CLOSE = '{"action": "close", "id": "t-k3f9", "reason": "completed", "summary": "..."}'
_DEP = '{"action": "dep", "id": "t-k3f9", "dependsOn": "t-m2xd"}'
_LINK = '{"action": "link", "id": "t-k3f9", "messageId": "@41 turn 7"}'
_CONTEXT = '{"action": "update_context", "content": "...", "section": "Decisions"}'
_MOST_READY = 3
_RELATIONS = {
    "blocks": "waits for",
    "parent-child": "is part of",
    "related": "is related to",
    "supersedes": "supersedes",
    "duplicates": "duplicates",
}

ResolveLink = Callable[[str], TaskLink]
"""The object of `@41` or `@41 turn 7`. Raises `ToolError`."""

UpdateContext = Callable[[str, str | None, str], str]
"""Content, section (None: all), `resource` or `thread`. Raises `ToolError`."""


class TaskQuery:
    """Answers questions about the project's tasks."""

    name = "task-query"

    def __init__(self, work: TaskWork, search_messages: SearchMessages | None = None) -> None:
        self._work = work
        self._search_messages = search_messages
        self._matcher = TaskMatcher(work)

    def run(self, input: Mapping[str, Any], call: str = "") -> str:  # noqa: ARG002
        """The result's text. Raises `ToolError`."""
        fields = ToolInput(self.name, input)
        action = fields.action(QUESTIONS)
        self._work.board.refresh()
        settled = settled_line(self._work)
        answer: str = getattr(self, f"_{action}")(fields)
        return settled + answer

    def _ready(self, given: ToolInput) -> str:
        board, now = self._work.board, self._work.now_ms()
        tasks = board.ready(given.number("limit", _READY, _MOST), now)
        own = [task for task in board.in_progress() if is_own(task, self._work.actor)]
        lines = [f"You work on {self._work.name(task)}: {task.called}" for task in own]
        lines.append(counts_line(board, now))
        lines += [line(board, task, now) for task in tasks]
        lines += _cut(board.counts(now)[0] - len(tasks))
        if not tasks and not board.all():
            lines = [NO_TASKS]
        return "\n".join(lines)

    def _show(self, given: ToolInput) -> str:
        work = self._work
        task = work.find(given.needed("id", '{"action": "show", "id": "t-k3f9"}'))
        full = given.flag("full", default=False)
        places = work.said_for(task)
        text = work.description(task)
        return details(work.board, task, text, work.now_ms(), said=places, full=full)

    def _list(self, given: ToolInput) -> str:
        board, now = self._work.board, self._work.now_ms()
        status = given.choice("status", ("any", *STATUSES), "any")
        selection = [
            task
            for task in board.all()
            if status in (task.status, "any") and (status != "any" or task.level(now) < _ARCHIVED)
        ]
        selection.sort(key=lambda task: (task.is_closed, -(task.closed_ms or 0)))
        limit = given.number("limit", _LISTED, _MOST)
        lines = [counts_line(board, now), *(any_line(board, t, now) for t in selection[:limit])]
        if not selection:
            lines.append("No such task.")
        lines += _cut(len(selection) - limit, ", or give a status, or search")
        return "\n".join(lines)

    def _search(self, given: ToolInput) -> str:
        query = given.needed("query", '{"action": "search", "query": "login"}')
        limit = given.number("limit", _FOUND, _MOST)
        matches = self._matcher.find(query)
        board, now = self._work.board, self._work.now_ms()
        lines = [f"{len(matches)} tasks found." if len(matches) != 1 else "1 task found."]
        lines += [any_line(board, task, now) for task in matches[:limit]]
        lines += _cut(len(matches) - limit)
        if given.flag("includeMessages", default=False):
            if self._search_messages is None:
                raise ToolError("Messages cannot be searched here: leave out includeMessages.")
            lines += ["", "Messages:", self._search_messages(query, limit)]
        return "\n".join(lines)


def _cut(left: int, otherwise: str = "") -> list[str]:
    return [f"and {left} more: raise limit (at most {_MOST}){otherwise}"] if left > 0 else []


@dataclass(frozen=True, slots=True)
class TaskMutate:
    """Changes the project's tasks."""

    _work: TaskWork
    _resolve_link: ResolveLink | None = None
    _update_context: UpdateContext | None = None
    _on_claimed: Callable[[str], None] = lambda _id: None
    """Receives each task that becomes active."""
    _is_private: Callable[[], bool] = lambda: False
    """Whether the session is private."""
    name: ClassVar[str] = "task-mutate"

    def run(self, input: Mapping[str, Any], call: str = "") -> str:  # noqa: ARG002
        """The result's text. Raises `ToolError`."""
        fields = ToolInput(self.name, input)
        action = fields.action(CHANGES)
        if action == "update_context":
            return self._update_working_memory(fields)
        if self._is_private() and action != "claim":
            raise ToolError(PRIVATE)
        self._work.board.refresh()
        # First, since what has become of a provisional claim decides what may be changed.
        settled = settled_line(self._work)
        answer: str = getattr(self, f"_{action}")(fields)
        away = "\nThe database is away: this is kept here, and delivered when it is back."
        return settled + answer + (away if self._work.away else "")

    def _create(self, given: ToolInput) -> str:
        work, parent = self._work, given.text("parent")
        new = NewTask(
            title=given.title(_CREATE),
            description=given.text("description"),
            priority=given.priority(),
            task_type=given.choice("type", TYPES, "task"),
            labels=given.labels(),
            metadata=given.object("metadata") if given.has("metadata") else {},
            parent=None if parent is None else work.find(parent).id,
            blocked_by=tuple(work.find(name).id for name in given.texts("dependsOn")),
        )
        link = self._message(given.needed("messageId", _LINK)) if given.has("messageId") else None
        task = work.create(new)
        if link is not None:
            task = work.link(task.id, link)
        return f"Created {self._line(task)}"

    def _claim(self, given: ToolInput) -> str:
        claimed = self._work.claim(self._find(given, _CLAIM).id)
        task, name = claimed.task, self._work.name(claimed.task)
        self._on_claimed(task.id)
        if claimed.provisional:
            return (
                f"Claimed provisionally: {name} {task.called}. The database that decides is away; "
                "a line will say whether the claim holds when it is back."
            )
        until = until_of(task)
        verb = "It is yours already" if claimed.again else "Claimed"
        close = "Close it with a summary when it is done."
        if self._is_private():
            close = "The session is private: the user closes it, with /tasks close."
        return f"{verb}: {name} {task.called}{until}, renewed while you work. {close}"

    def _close(self, given: ToolInput) -> str:
        work = self._work
        task = self._find(given, _CLOSE)
        waiting = work.board.blocked_by(task.id)
        summary = given.needed("summary", _CLOSE)
        closed = work.close(task.id, given.choice("reason", REASONS, "completed"), summary)
        free = [t for t in waiting if t.status == "open" and not any(work.board.open_blockers(t))]
        lines = [f"Closed {work.name(closed)} ({closed.close_reason}): {closed.called}"]
        lines += [f"Ready now: {self._line(t)}" for t in free[:_MOST_READY]]
        return "\n".join(lines)

    def _dep(self, given: ToolInput) -> str:
        task = self._find(given, _DEP)
        on = self._work.find(given.needed("dependsOn", _DEP))
        relation = given.choice("type", RELATIONS, "blocks")
        add = given.flag("add", default=True)
        self._work.connect(task.id, on.id, relation, add=add)
        names = f"{self._work.name(task)} {{}} {self._work.name(on)} {on.called}."
        if add:
            return names.format(_RELATIONS[relation])
        return names.format(f"no longer {_RELATIONS[relation]}")

    def _link(self, given: ToolInput) -> str:
        task = self._find(given, _LINK)
        message_name = given.needed("messageId", _LINK)
        link = self._message(message_name)
        self._work.link(task.id, link, add=given.flag("add", default=True))
        return f"Linked {one_line(message_name)} to {self._work.name(task)}."

    def _message(self, named: str) -> TaskLink:
        if self._resolve_link is None:
            raise ToolError("Messages cannot be linked here.")
        return self._resolve_link(named)

    def _update(self, given: ToolInput) -> str:
        task = self._find(given, _UPDATE)
        fields = self._changed_fields(given)
        if not fields:
            raise ToolError(
                "update needs what is to change: title, description, priority, type, labels, "
                'metadata, or status "open" to release or reopen it.'
            )
        changed = self._work.update(task.id, fields)
        return f"Updated {any_line(self._work.board, changed, self._work.now_ms())}"

    def _changed_fields(self, given: ToolInput) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        status = given.choice("status", ("open", "in_progress", "closed"), "open")
        if status != "open":
            instead = "claim" if status == "in_progress" else "close"
            raise ToolError(f"update sets no status {status!r}: use the action {instead}.")
        if given.has("status"):
            fields["status"] = "open"
        if given.has("title"):
            fields["title"] = given.title(_CREATE)
        if given.has("description"):
            fields["content"] = given.text("description")
        if given.has("priority"):
            fields["priority"] = given.priority()
        if given.has("type"):
            fields["task_type"] = given.choice("type", TYPES, "task")
        if given.has("labels"):
            fields["labels"] = list(given.labels())
        if given.has("metadata"):
            fields["metadata"] = given.object("metadata")
        return fields

    def _update_working_memory(self, given: ToolInput) -> str:
        if self._update_context is None:
            raise ToolError("This project keeps no working memory: leave update_context out.")
        # An empty text empties a section; of a whole page it is a mistake.
        empties = given.is_empty("content") and given.has("section")
        content = "" if empties else given.needed("content", _CONTEXT)
        scope = given.choice("scope", SCOPES, "resource")
        if self._is_private() and scope != "thread":
            raise ToolError(f"{PRIVATE} {OWN_PAGE}")
        return self._update_context(content, given.text("section"), scope)

    def _find(self, given: ToolInput, example: str) -> Task:
        return self._work.find(given.needed("id", example))

    def _line(self, task: Task) -> str:
        return line(self._work.board, task, self._work.now_ms())


def settled_line(work: TaskWork) -> str:
    work.settle()
    news = "".join(f"{line}\n" for line in work.news)
    work.news.clear()
    return news

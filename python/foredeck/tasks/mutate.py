"""The model's tool `task-mutate`: create, claim, close, dep, link, update, update_context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from foredeck.errors import ToolError
from foredeck.model.quoting import one_line
from foredeck.model.tasks import TaskLink
from foredeck.tasks.claiming import until_of
from foredeck.tasks.inputs import REASONS, RELATIONS, TYPES, ToolInput
from foredeck.tasks.query import settled_line
from foredeck.tasks.task import Task
from foredeck.tasks.wording import any_line, line
from foredeck.tasks.work import Claimed, NewTask, TaskWork

ACTIONS = ("create", "claim", "close", "dep", "link", "update", "update_context")
SCOPES = ("resource", "thread")
_CREATE = '{"action": "create", "title": "Fix the login redirect"}'
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
"""What is meant by `@41` or `@41 turn 7`. Raises `ToolError`."""

UpdateContext = Callable[[str, str | None, str], str]
"""Writes the working memory: content, section (None: all of it), `resource` or `thread`; returns
what the model reads. Raises `ToolError`."""


class TaskMutate:
    """Changes the project's tasks."""

    name = "task-mutate"

    def __init__(
        self,
        work: TaskWork,
        resolve_link: ResolveLink | None = None,
        update_context: UpdateContext | None = None,
        on_claimed: Callable[[str], None] = lambda _id: None,
    ) -> None:
        """`on_claimed` is called with the id of each task that becomes the session's active one."""
        self._work = work
        self._resolve_link = resolve_link
        self._update_context = update_context
        self._on_claimed = on_claimed

    def run(self, input: Mapping[str, Any], call: str = "") -> str:  # noqa: ARG002
        """The text of the result. Raises `ToolError`."""
        given = ToolInput(self.name, input)
        action = given.action(ACTIONS)
        if action == "update_context":
            return self._update_working_memory(given)
        self._work.board.refresh()
        settled = settled_line(self._work)
        answer: str = getattr(self, f"_{action}")(given)
        away = "\nThe database is away: this is kept here, and delivered when it is back."
        return settled + answer + (away if self._work.away else "")

    def _create(self, given: ToolInput) -> str:
        work = self._work
        parent = given.text("parent")
        new = NewTask(
            title=given.title(_CREATE),
            description=given.text("description"),
            priority=_or(given.priority(), 2),
            task_type=given.choice("type", TYPES, "task"),
            labels=given.labels(),
            parent=None if parent is None else work.find(parent).id,
            blocked_by=tuple(work.find(name).id for name in given.texts("dependsOn")),
        )
        link = self._message(given.needed("messageId", _LINK)) if given.has("messageId") else None
        task = work.create(new)
        if link is not None:
            task = work.link(task.id, link)
        return f"Created {self._line(task)}"

    def _claim(self, given: ToolInput) -> str:
        claimed = self._work.claim(
            self._find(given, "id", '{"action": "claim", "id": "t-k3f9"}').id
        )
        self._on_claimed(claimed.task.id)
        return self._claimed(claimed)

    def _claimed(self, claimed: Claimed) -> str:
        task, name = claimed.task, self._work.name(claimed.task)
        if claimed.provisional:
            return (
                f"Claimed provisionally: {name} {task.called}. The database that decides is away; "
                "you will be told whether the claim holds when it is back."
            )
        until = until_of(task)
        said = "It is yours already" if claimed.again else "Claimed"
        close = "Close it with a summary when it is done."
        return f"{said}: {name} {task.called}{until}, renewed while you work. {close}"

    def _close(self, given: ToolInput) -> str:
        work = self._work
        task = self._find(given, "id", _CLOSE)
        waiting = work.board.blocked_by(task.id)
        summary = given.needed("summary", _CLOSE)
        closed = work.close(task.id, given.choice("reason", REASONS, "completed"), summary)
        free = [t for t in waiting if t.status == "open" and not any(work.board.open_blockers(t))]
        lines = [f"Closed {work.name(closed)} ({closed.close_reason}): {closed.called}"]
        lines += [f"Ready now: {self._line(t)}" for t in free[:_MOST_READY]]
        return "\n".join(lines)

    def _dep(self, given: ToolInput) -> str:
        task = self._find(given, "id", _DEP)
        on = self._work.find(given.needed("dependsOn", _DEP))
        relation = given.choice("type", RELATIONS, "blocks")
        add = given.flag("add", default=True)
        self._work.connect(task.id, on.id, relation, add=add)
        names = f"{self._work.name(task)} {{}} {self._work.name(on)} {on.called}."
        if add:
            return names.format(_RELATIONS[relation])
        return names.format(f"no longer {_RELATIONS[relation]}")

    def _link(self, given: ToolInput) -> str:
        task = self._find(given, "id", _LINK)
        named = given.needed("messageId", _LINK)
        link = self._message(named)
        self._work.link(task.id, link, add=given.flag("add", default=True))
        return f"Linked {one_line(named)} to {self._work.name(task)}."

    def _message(self, named: str) -> TaskLink:
        if self._resolve_link is None:
            raise ToolError("Messages cannot be linked here.")
        return self._resolve_link(named)

    def _update(self, given: ToolInput) -> str:
        task = self._find(given, "id", '{"action": "update", "id": "t-k3f9", "priority": 1}')
        fields = self._changed_fields(given)
        if not fields:
            raise ToolError(
                "update needs what is to change: title, description, priority, type, labels, or "
                'status "open" to release or reopen it.'
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
        if (priority := given.priority()) is not None:
            fields["priority"] = priority
        if given.has("type"):
            fields["task_type"] = given.choice("type", TYPES, "task")
        if given.has("labels"):
            fields["labels"] = list(given.labels())
        return fields

    def _update_working_memory(self, given: ToolInput) -> str:
        if self._update_context is None:
            raise ToolError("This project keeps no working memory: leave update_context out.")
        content = given.needed("content", _CONTEXT)
        scope = given.choice("scope", SCOPES, "resource")
        return self._update_context(content, given.text("section"), scope)

    def _find(self, given: ToolInput, name: str, example: str) -> Task:
        return self._work.find(given.needed(name, example))

    def _line(self, task: Task) -> str:
        return line(self._work.board, task, self._work.now_ms())


def _or(value: int | None, default: int) -> int:
    return default if value is None else value

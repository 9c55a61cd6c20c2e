"""What the user types after `/tasks` and `/search`, and what they see of the tasks otherwise."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeVar

from foredeck.context.tools.memory_search import MemorySearch
from foredeck.engine.opening import OpenedSession
from foredeck.errors import ForedeckError, ToolError
from foredeck.hosts.protocol import (
    CommandResult,
    SessionOpenResult,
    TaskStatus,
    ToolCallResult,
)

if TYPE_CHECKING:
    from foredeck.tasks.tools import SessionTasks

log = logging.getLogger(__name__)

Answer = TypeVar("Answer", SessionOpenResult, ToolCallResult, CommandResult)

LISTED, FOUND = 50, 5
OPEN_NAMED = 20
"""Open tasks that the host can complete to."""
_TITLE = 60
_REASONS = ("wontfix", "duplicate")

_ON = "From the next session on, the model has task-query and task-mutate in this project."
_OFF = "From the next session on, the model has no task tools in this project; /tasks stays."


def tasks_command(opened: OpenedSession, arguments: str) -> str:
    """`/tasks`. Raises `ToolError` with a text for the user."""
    verb, _, rest = arguments.partition(" ")
    if verb in ("on", "off"):
        return _choose(opened, wanted=verb == "on")
    tasks, rest = _tasks(opened), rest.strip()
    match verb:
        case "list":
            return tasks.query.run({"action": "list", "limit": LISTED})
        case "show":
            return tasks.query.run({"action": "show", "id": rest, "full": True})
        case "new":
            return tasks.user_mutate.run({"action": "create", "title": rest})
        case "claim":
            return tasks.user_mutate.run({"action": "claim", "id": rest})
        case "close":
            return tasks.user_mutate.run({"action": "close", **_closing(rest)})
    raise ToolError(f"There is no /tasks {verb}: it is list, new, claim, close, show, on or off.")


def search_command(opened: OpenedSession, query: str) -> str:
    """`/search`: as the model's own search, in words for people, with what the model sees."""
    memory = opened.facilities.tools.get(MemorySearch.name)
    if not isinstance(memory, MemorySearch):
        raise ToolError("Search is switched off (tools.search in the configuration).")
    return memory.for_user(query, FOUND)


def with_tasks(answer: Answer, opened: OpenedSession) -> Answer:
    """The answer, with what the host shows of the project's tasks, where it has any; and what its
    next session declares. Neither is worth a failure."""
    if opened.switches is None:
        return answer
    opened.switches.refresh()
    try:
        tasks = opened.session.tasks
        if tasks is not None and opened.switches.holds_tasks():
            answer["tasks"] = _status(tasks)
    except ForedeckError as error:
        log.warning("the project's tasks cannot be shown: %s", error)
    return answer


def _status(tasks: SessionTasks) -> TaskStatus:
    from foredeck.tasks.wording import counts_line

    board, now_ms = tasks.work.board, tasks.work.now_ms()
    board.refresh()
    waiting = [*board.in_progress(), *board.ready(OPEN_NAMED, now_ms)][:OPEN_NAMED]
    return {
        "line": f"{_active(tasks)}{counts_line(board, now_ms)}",
        "open": [[board.names.name(task.id), task.called] for task in waiting],
    }


def _active(tasks: SessionTasks) -> str:
    from foredeck.tasks.wording import clipped

    task = tasks.active.task()
    return "" if task is None else f"{tasks.work.name(task)} {clipped(task.title, _TITLE)} · "


def _tasks(opened: OpenedSession) -> SessionTasks:
    if opened.session.tasks is None:
        raise ToolError("The project's tasks are switched off (tools.tasks in the configuration).")
    return opened.session.tasks


def _closing(rest: str) -> dict[str, Any]:
    """`t-k3f9 It works`, or with a reason before the summary."""
    name, _, said = rest.partition(" ")
    reason, _, summary = said.strip().partition(" ")
    if reason in _REASONS:
        return {"id": name, "reason": reason, "summary": summary}
    return {"id": name, "summary": said}


def _choose(opened: OpenedSession, *, wanted: bool) -> str:
    if opened.switches is None:
        raise ToolError("This session's project is not known here.")
    _tasks(opened)
    try:
        opened.switches.choose_tasks(wanted)
    except OSError as error:
        raise ToolError(f"That cannot be kept: {error.strerror or error}.") from error
    return _ON if wanted else _OFF

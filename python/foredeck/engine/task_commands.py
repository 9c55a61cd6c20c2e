"""What the user types after `/tasks`, and what they see of the tasks otherwise."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, TypeVar

from foredeck.engine.opened import OpenedSession
from foredeck.errors import ForedeckError, ToolError
from foredeck.hosts.protocol import (
    CommandResult,
    SessionOpenResult,
    TaskStatus,
    ToolCallResult,
)

if TYPE_CHECKING:
    from foredeck.tasks.session import SessionTasks

log = logging.getLogger(__name__)

Answer = TypeVar("Answer", SessionOpenResult, ToolCallResult, CommandResult)

LISTED = 50
_TITLE = 60
_PRIORITY = re.compile(r"(?:^|\s)--priority[ =]?(\S*)")
_REASONS = ("wontfix", "duplicate")

_NEEDED = {
    "new": "Say what is to be done: /tasks new TITLE.",
    "show": "Say which task: /tasks show t-k3f9.",
    "claim": "Say which task: /tasks claim t-k3f9.",
    "open": "Say which task: /tasks open t-k3f9.",
    "close": "Say which task, and what came of it: /tasks close t-k3f9 SUMMARY.",
}
"""By verb, what the user reads who says no more."""

_ON = "From the next session on, the model has task-query and task-mutate in this project."
_OFF = "From the next session on, the model has no task tools in this project; /tasks stays."


def tasks_command(opened: OpenedSession, arguments: str) -> str:
    """`/tasks`. Raises `ToolError` with a text for the user."""
    verb, _, rest = arguments.partition(" ")
    if verb in ("on", "off"):
        return _choose(opened, wanted=verb == "on")
    tasks, rest = tasks_of(opened), rest.strip()
    if verb == "list":
        return tasks.query.run({"action": "list", "limit": LISTED})
    if verb not in _NEEDED:
        raise ToolError(f"There is no /tasks {verb}. /tasks help lists what there is.")
    if not rest:
        raise ToolError(_NEEDED[verb])
    match verb:
        case "show":
            return tasks.query.run({"action": "show", "id": rest, "full": True})
        case "new":
            return tasks.user_mutate.run({"action": "create", **_new(rest)})
        case "open":
            return tasks.user_mutate.run({"action": "update", "id": rest, "status": "open"})
        case "close":
            return tasks.user_mutate.run({"action": "close", **_closing(rest)})
    try:
        return tasks.user_mutate.run({"action": "claim", "id": rest})
    except ToolError as error:
        # The model's own words for it are those of its tool.
        said = str(error).replace('update it with status "open" first', f"type /tasks open {rest}")
        raise ToolError(said) from None


def with_tasks(answer: Answer, opened: OpenedSession) -> Answer:
    """The answer, with what the host shows of the project's tasks, where it has any; and what its
    next session declares. Neither is worth a failure."""
    if opened.switches is None:
        return answer
    opened.switches.refresh()
    try:
        tasks = opened.features.tasks
        if tasks is not None and opened.switches.holds_tasks():
            answer["tasks"] = _status(tasks)
    except ForedeckError as error:
        log.warning("the project's tasks cannot be shown: %s", error)
    return answer


def _status(tasks: SessionTasks) -> TaskStatus:
    # Loads where a project has tasks.
    from foredeck.tasks.wording import clipped, counts_line

    work, board = tasks.work, tasks.work.board
    board.refresh()
    task, line = tasks.active.task(), counts_line(board, work.now_ms())
    if task is not None:
        line = f"{work.name(task)} {clipped(task.title, _TITLE)} · {line}"
    return {"line": line}


def tasks_of(opened: OpenedSession) -> SessionTasks:
    """The project's tasks. Raises `ToolError` where they are switched off."""
    if opened.features.tasks is None:
        raise ToolError("The project's tasks are switched off (tools.tasks in the configuration).")
    return opened.features.tasks


def _new(rest: str) -> dict[str, Any]:
    """`Fix the login --priority 1`."""
    asked = _PRIORITY.search(rest)
    if asked is None:
        return {"title": rest}
    title = f"{rest[: asked.start()]} {rest[asked.end() :]}".strip()
    if not title:
        raise ToolError(_NEEDED["new"])
    return {"title": title, "priority": asked[1] or "?"}


def _closing(rest: str) -> dict[str, Any]:
    """`t-k3f9 It works`, or with a reason before the summary."""
    name, _, said = rest.partition(" ")
    if not said.strip():
        raise ToolError(f"Say what came of it: /tasks close {name} SUMMARY.")
    reason, _, summary = said.strip().partition(" ")
    if reason in _REASONS:
        return {"id": name, "reason": reason, "summary": summary}
    return {"id": name, "summary": said}


def _choose(opened: OpenedSession, *, wanted: bool) -> str:
    if opened.switches is None:
        raise ToolError("This session's project is not known here.")
    tasks_of(opened)
    try:
        opened.switches.choose_tasks(wanted)
    except OSError as error:
        raise ToolError(f"That cannot be kept: {error.strerror or error}.") from error
    return _ON if wanted else _OFF

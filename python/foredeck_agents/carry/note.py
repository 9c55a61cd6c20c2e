"""The words before what is carried: where it is from, what has changed, the way back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

from foredeck.config import Config
from foredeck.context.messages.shape import time_of
from foredeck.context.wording import CARRIED
from foredeck.model.quoting import name as named
from foredeck.sources.projects import project_at
from foredeck.store.clock import now_ms
from foredeck.store.store import Store
from foredeck.tasks.board import Board
from foredeck_agents.carry.tools import PI_TOOLS
from foredeck_agents.histories.records import RecordedMessage
from foredeck_agents.histories.tools import touching

MOST_FILES = 12
"""Files that are named; the rest is counted."""
MOST_TASKS = 5
"""Open tasks that are named."""
_CLOCKS_MS = 2_000
"""How far a file's time and a message's may differ."""


def note_lines(
    agent: str,
    session: str,
    called: str,
    before: str,
    changed: Sequence[str],
    foreign: Sequence[str],
    tasks: Sequence[str],
) -> Iterator[str]:
    """Lines of the first message.

    `called`: the new session, for handles; `before`: its folder, if it was another; `foreign`:
    tools that are not here.
    """
    yield f"{CARRIED}{agent}, session {named(session)}; it goes on here."
    yield (
        "Lines with a handle (@12) stand for folded output: activate @12 if you have that tool, "
        f"else run `foredeck cat {called}:@12`; `foredeck search WORDS --session {called}` finds "
        "the rest."
    )
    if before:
        yield f"Its folder there was {named(before)}; here it is the one where you are."
    if changed:
        listed = ", ".join(map(named, changed[:MOST_FILES]))
        count = len(changed) - MOST_FILES
        more = f" and {count} more" if count > 0 else ""
        yield f"Changed on disk since then, read again before you rely on them: {listed}{more}."
    if foreign:
        yield f"Tools called there that you do not have: {', '.join(map(named, foreign))}."
    if tasks:
        yield f"Open tasks of the project: {'; '.join(tasks)}."


def open_tasks(store: Store, config: Config, folder: str) -> list[str]:
    """The project's tasks in progress, and those that can begin."""
    board = Board(store, project_at(config, folder).id)
    board.refresh()
    tasks = [*board.in_progress(), *board.ready(MOST_TASKS, now_ms())]
    return [f"{board.known_name(task.id)} {task.called}" for task in tasks[:MOST_TASKS]]


def foreign_tools(messages: Sequence[RecordedMessage]) -> list[str]:
    """Tools that were called and no other agent has."""
    called = {str(call.get("name")) for each in messages for call in _calls(each.message)}
    return sorted(called - PI_TOOLS)


def changed_since(messages: Sequence[RecordedMessage], before: str, now: str) -> list[str]:
    """Files of the session that something else has changed or deleted since."""
    touched: dict[str, int] = {}
    paths: dict[str, str] = {}
    for each in messages:
        message = each.message
        if message.get("role") == "assistant":
            paths |= {str(b.get("id")): path for b in _calls(message) if (path := _path(b))}
        elif path := paths.get(str(message.get("toolCallId")), ""):
            touched[path] = time_of(message)
    return [path for path, time_ms in touched.items() if _is_newer(path, time_ms, before, now)]


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [b for b in blocks if isinstance(b, dict) and b.get("type") == "toolCall"]


def _path(block: dict[str, Any]) -> str:
    given = block.get("arguments")
    tool, arguments = touching(str(block.get("name")), given if isinstance(given, dict) else {})
    path = arguments.get("path")
    return path if tool in ("read", "edit", "write") and isinstance(path, str) else ""


def _is_newer(path: str, time_ms: int, before: str, now: str) -> bool:
    whole = PurePath(before, path)
    place = Path(now, whole.relative_to(before)) if whole.is_relative_to(before) else Path(whole)
    try:
        return time_ms > 0 and place.stat().st_mtime * 1000 > time_ms + _CLOCKS_MS
    except FileNotFoundError:
        return place.parent.is_dir()
    except (OSError, ValueError):
        return False

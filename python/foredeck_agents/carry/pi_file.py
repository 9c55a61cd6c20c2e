"""A session in Pi's format (the other side of `histories/pi.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from foredeck.context.messages.shape import Message
from foredeck_agents.carry.messages import NewSession, made_id, stamp

_COUNTS = ("input", "output", "cacheRead", "cacheWrite")
_NO_USAGE = {
    **dict.fromkeys((*_COUNTS, "totalTokens"), 0),
    "cost": dict.fromkeys((*_COUNTS, "total"), 0),
}
"""Nothing was asked in this session yet."""


def folder_name(cwd: str) -> str:
    """The folder of a project's sessions, below `sessions`."""
    path = re.sub(r"^[/\\]", "", cwd)
    return "--" + re.sub(r"[/:\\]", "-", path) + "--"


def lines_of(session: NewSession, messages: Sequence[Message]) -> Iterator[dict[str, Any]]:
    """The lines of a session's file."""
    header = {"type": "session", "version": 3, "id": session.id, "cwd": session.cwd}
    yield {**header, "timestamp": session.began}
    parent: str | None = None
    for number, message in enumerate(messages):
        entry = made_id(session.id, f"entry {number}")[:8]
        given = {"id": entry, "parentId": parent, "timestamp": stamp(message)}
        parent = entry
        own = {name: value for name, value in message.items() if name != "number"}
        if message["role"] == "assistant":
            own["usage"] = _NO_USAGE
        if message["role"] == "custom":
            kind = {"customType": message["customType"], "content": message["content"]}
            yield {"type": "custom_message", **given, **kind, "display": False}
        else:
            yield {"type": "message", **given, "message": own}
    named = {"id": made_id(session.id, "name")[:8], "parentId": parent, "timestamp": session.began}
    yield {"type": "session_info", **named, "name": session.title}

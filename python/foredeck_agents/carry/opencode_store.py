"""Reads sessions from opencode's database."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from foredeck.context.messages.items import text_block
from foredeck.context.messages.shape import Message
from foredeck_agents.histories.records import RecordedMessage, milliseconds
from foredeck_agents.histories.tools import in_pis_tools

Json = dict[str, Any]


class OpencodeSession(NamedTuple):
    """A session as opencode has kept it. `model`: of its newest answer."""

    folder: str
    messages: list[RecordedMessage]
    model: str


def opencode_session(session: str) -> OpencodeSession | None:
    """A session by its id; None where opencode has none, or keeps its sessions otherwise."""
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    file = data / "opencode" / "opencode.db"
    if not file.is_file():
        return None
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            return _read(database, session)
    except (sqlite3.Error, ValueError, LookupError, TypeError, AttributeError):
        return None  # another version's tables


def _read(database: sqlite3.Connection, session: str) -> OpencodeSession | None:
    row = database.execute("SELECT directory FROM session WHERE id = ?", (session,)).fetchone()
    if row is None:
        return None
    rows = database.execute(
        "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", (session,)
    ).fetchall()
    made: list[Message] = []
    for id, info in rows:
        parts = database.execute("SELECT data FROM part WHERE message_id = ? ORDER BY id", (id,))
        made += _messages(json.loads(info), [json.loads(data) for (data,) in parts])
    answers = [message for message in made if message["role"] == "assistant"]
    model = f"{answers[-1]['provider']}/{answers[-1]['model']}" if answers else ""
    return OpencodeSession(row[0], [RecordedMessage(in_pis_tools(m), None) for m in made], model)


def _messages(info: Json, parts: list[Json]) -> Iterator[Message]:
    """A message, and the results that opencode keeps with their calls."""
    timestamp = milliseconds(info["time"]["created"])
    texts = [part for part in parts if part["type"] == "text" and part["text"].strip()]
    blocks = [text_block(part["text"]) for part in texts]
    if info["role"] != "assistant":
        # What opencode adds itself, such as a file that was named, is synthetic.
        own = [text_block(part["text"]) for part in texts if not part.get("synthetic")]
        role = {"role": "user"} if own else {"role": "custom", "customType": "opencode"}
        if blocks:
            yield {**role, "content": own or blocks, "timestamp": timestamp}
        return
    calls = [part for part in parts if part["type"] == "tool"]
    blocks += [
        {
            "type": "toolCall",
            "id": call["callID"],
            "name": call["tool"],
            "arguments": call["state"].get("input") or {},
        }
        for call in calls
    ]
    if not blocks:
        return
    yield {
        "role": "assistant",
        "content": blocks,
        "provider": str(info.get("providerID") or ""),
        "model": str(info.get("modelID") or ""),
        "stopReason": "toolUse" if calls else "stop",
        "timestamp": timestamp,
    }
    for call in calls:
        state = call["state"]
        if state["status"] in ("completed", "error"):
            text = str(state.get("output") or state.get("error") or "")
            yield {
                "role": "toolResult",
                "toolCallId": call["callID"],
                "toolName": call["tool"],
                "content": [text_block(text)] if text else [],
                "isError": state["status"] == "error",
                "timestamp": milliseconds(state["time"]["end"]),
            }

"""Sessions of opencode: read from its database, and written for `opencode import`."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from foredeck.context.messages.items import text_block
from foredeck.context.messages.shape import Message, time_of
from foredeck.model.messages import text_in
from foredeck_agents.carry.messages import NewSession, made_id
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


_VERSION = "1.18.0"


def session_id(id: str) -> str:
    return f"ses_{made_id(id)[:26]}"


def whole(session: NewSession, messages: Sequence[Message]) -> Json:
    """The session."""
    writer = _Messages(session)
    for message in messages:
        writer.take(message)
    times = [time_of(message) for message in messages] or [0]
    info = {
        "id": session.id,
        "slug": f"carried-{session.id[-8:]}",
        "projectID": "global",
        "directory": session.cwd,
        "title": session.title,
        "version": _VERSION,
        "time": {"created": min(times), "updated": max(times)},
    }
    return {"info": info, "messages": writer.messages}


class _Messages:
    def __init__(self, session: NewSession) -> None:
        self.messages: list[Json] = []
        self._session = session
        provider, _, model = session.model.partition("/")
        self._model = {"providerID": provider, "modelID": model}
        self._asked = ""
        self._calls: dict[str, Json] = {}

    def take(self, message: Message) -> None:
        """The next message."""
        match message["role"]:
            case "toolResult":
                self._result(message)
            case "assistant":
                self._answer(message)
            case role:
                self._said(message, synthetic=role == "custom")

    def _said(self, message: Message, *, synthetic: bool) -> None:
        info = {"role": "user", "time": {"created": time_of(message)}, "agent": "build"}
        added = self._added({**info, "model": self._model})
        self._asked = added["info"]["id"]
        for block in message["content"]:
            is_image = block["type"] == "image"
            part = _file(block) if is_image else {"type": "text", "text": block["text"]}
            self._part(added, part | ({"synthetic": True} if synthetic and not is_image else {}))

    def _answer(self, message: Message) -> None:
        if not self._asked:  # every answer of opencode's names what it answers
            self._said({**message, "content": []}, synthetic=True)
        now = time_of(message)
        info = {
            "parentID": self._asked,
            "role": "assistant",
            "mode": "build",
            "agent": "build",
            "path": {"cwd": self._session.cwd, "root": self._session.cwd},
            "cost": 0,
            "tokens": _NO_TOKENS,
            **self._model,
            "time": {"created": now, "completed": now},
            "finish": "tool-calls" if message["stopReason"] == "toolUse" else "stop",
        }
        added = self._added(info)
        self._part(added, {"type": "step-start"})
        for block in message["content"]:
            if block["type"] != "toolCall":
                self._part(added, {"type": "text", "text": block["text"]})
                continue
            state = {"status": "completed", "input": block["arguments"], "output": ""}
            state |= {"title": block["name"], "metadata": {}, "time": {"start": now, "end": now}}
            part = {"type": "tool", "tool": block["name"], "callID": block["id"], "state": state}
            self._calls[block["id"]] = self._part(added, part)
        ended = {"type": "step-finish", "reason": info["finish"], "cost": 0}
        self._part(added, {**ended, "tokens": _NO_TOKENS})

    def _result(self, message: Message) -> None:
        part = self._calls[message["toolCallId"]]
        state = part["state"]
        text = text_in(message["content"])
        if message["isError"]:
            for name in ("output", "title", "metadata"):
                del state[name]
            state |= {"status": "error", "error": text}
            return
        state["output"] = text
        own = {"sessionID": self._session.id, "messageID": part["messageID"]}
        images = [block for block in message["content"] if block["type"] == "image"]
        attached = [
            {"id": f"{part['id']}{n}", **own, **_file(image)} for n, image in enumerate(images)
        ]
        state |= {"attachments": attached} if attached else {}

    def _added(self, info: Json) -> Json:
        # Its messages and parts are read in the order of their ids.
        id = f"msg_{len(self.messages):012x}{made_id(self._session.id)[:14]}"
        added = {"info": {**info, "id": id, "sessionID": self._session.id}, "parts": []}
        self.messages.append(added)
        return added

    def _part(self, message: Json, part: Json) -> Json:
        own = message["info"]["id"]
        number = len(message["parts"])
        id = f"prt_{own[4:16]}{number:04x}{made_id(self._session.id)[:10]}"
        part |= {"id": id, "sessionID": self._session.id, "messageID": own}
        message["parts"].append(part)
        return part


_NO_TOKENS = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}


def _file(image: Mapping[str, Any]) -> Json:
    url = f"data:{image['mimeType']};base64,{image['data']}"
    return {"type": "file", "mime": image["mimeType"], "url": url}

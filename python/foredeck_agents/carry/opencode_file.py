"""A session for `opencode import`: one JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foredeck.context.messages.shape import Message, time_of
from foredeck.model.messages import text_in
from foredeck_agents.carry.messages import NewSession, made_id

_VERSION = "1.18.0"
Json = dict[str, Any]


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

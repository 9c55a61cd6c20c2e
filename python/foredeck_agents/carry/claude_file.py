"""A session in Claude Code's format (the other side of `histories/claude_code.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from foredeck.context.messages.shape import Message
from foredeck.model.quoting import looks_like_ours
from foredeck_agents.carry.messages import NewSession, made_id, stamp

_PARTLY = re.compile(r"\n\n\[[^\]\n]* more lines[^\]\n]*\]\s*\Z")


def folder_name(cwd: str) -> str:
    """The folder of a project's sessions, below `projects`."""
    return re.sub(r"[^A-Za-z0-9]", "-", cwd)


def lines_of(session: NewSession, messages: Sequence[Message]) -> Iterator[dict[str, Any]]:
    """The lines of a session's file."""
    writer = _ClaudeLines(session)
    results: list[Message] = []
    for message in messages:
        if message["role"] == "toolResult":
            results.append(message)
            continue
        yield from writer.results(results)
        results = []
        if message["role"] == "assistant":
            yield from writer.answer(message)
        else:
            yield writer.said(message)
    yield from writer.results(results)
    yield {"type": "ai-title", "aiTitle": session.title, "sessionId": session.id}


class _ClaudeLines:
    def __init__(self, session: NewSession) -> None:
        self._session = session
        self._parent: str | None = None
        self._count = 0

    def said(self, message: Message) -> dict[str, Any]:
        meta = {"isMeta": True} if message["role"] == "custom" else {}
        content = [_block(block) for block in message["content"]]
        return self._line("user", message, {"role": "user", "content": content}, meta)

    def answer(self, message: Message) -> Iterator[dict[str, Any]]:
        """A line for each block of an answer."""
        blocks = message["content"]
        asks = any(block["type"] == "toolCall" for block in blocks)
        for block in blocks:
            shared = {
                "id": f"msg_{made_id(self._session.id, str(message['number']))[:24]}",
                "type": "message",
                "role": "assistant",
                "model": str(message.get("model") or ""),
                "content": [_part(block)],
                "stop_reason": "tool_use" if asks else "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 0, "output_tokens": 0},
            }
            yield self._line("assistant", message, shared, {})

    def results(self, results: Sequence[Message]) -> Iterator[dict[str, Any]]:
        for result in results:
            block = {
                "type": "tool_result",
                "tool_use_id": result["toolCallId"],
                "content": [_block(each) for each in result["content"]],
                "is_error": bool(result.get("isError")),
            }
            yield self._line("user", result, {"role": "user", "content": [block]}, {})

    def _line(
        self, kind: str, message: Message, content: dict[str, Any], more: dict[str, Any]
    ) -> dict[str, Any]:
        self._count += 1
        parent, self._parent = self._parent, made_id(self._session.id, f"line {self._count}", "-")
        return {
            "parentUuid": parent,
            "isSidechain": False,
            "type": kind,
            "message": content,
            **more,
            "uuid": self._parent,
            "timestamp": stamp(message),
            "userType": "external",
            "cwd": self._session.cwd,
            "sessionId": self._session.id,
            "version": "2.1.0",  # the form of the lines
            "gitBranch": "",
        }


def _part(block: Mapping[str, Any]) -> dict[str, Any]:
    if block["type"] != "toolCall":
        return _block(block)
    return {
        "type": "tool_use",
        "id": block["id"],
        "name": block["name"],
        "input": block["arguments"],
    }


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    if block["type"] == "image":
        source = {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}
        return {"type": "image", "source": source}
    return {"type": "text", "text": block["text"]}


def numbered(messages: Sequence[Message]) -> list[Message]:
    """Messages with the lines of whole files as Claude Code shows them, by which it knows that they
    were read."""
    whole: set[str] = set()
    made: list[Message] = []
    for message in messages:
        calls = (block for block in message["content"] if block["type"] == "toolCall")
        whole |= {
            call["id"]
            for call in calls
            if call["name"] == "Read" and not {"offset", "limit"} & call["arguments"].keys()
        }
        is_file = message.get("toolCallId") in whole and not message.get("isError")
        content = [_numbered(block) if is_file else block for block in message["content"]]
        made.append({**message, "content": content})
    return made


def _numbered(block: Mapping[str, Any]) -> Mapping[str, Any]:
    text = block.get("text")
    if not isinstance(text, str) or looks_like_ours(text) or _PARTLY.search(text):
        return block
    lines = text.split("\n")
    return {**block, "text": "\n".join(f"{n}\t{line}" for n, line in enumerate(lines, start=1))}

"""A session as a rollout of Codex (the other side of `histories/codex.py`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from foredeck.context.messages.shape import Message
from foredeck.model.messages import text_in
from foredeck_agents.carry.messages import NewSession, made_id, stamp, wrapped

_VERSION = "0.169.0"
"""The form of the lines: Codex reads those of earlier versions."""
JsonLine = dict[str, Any]
MOST_RESULT_CHARS = 12_000
"""Codex cuts longer results of a session that it resumes in the middle."""


def cut(messages: Sequence[Message]) -> list[Message]:
    """Messages with results as long as Codex shows them."""
    return [
        {**message, "content": [_cut(block) for block in message["content"]]}
        if message["role"] == "toolResult"
        else message
        for message in messages
    ]


def _cut(block: Mapping[str, Any]) -> Mapping[str, Any]:
    text = str(block.get("text") or "")
    beyond = len(text) - MOST_RESULT_CHARS
    if beyond <= 0:
        return block
    half = MOST_RESULT_CHARS // 2
    return {**block, "text": f"{text[:half]}…{beyond} chars truncated…{text[-half:]}"}


def place_of(session: NewSession) -> str:
    """The file's name and folders below `sessions`."""
    day, _, time = session.began.partition("T")
    name = f"rollout-{day}T{time[:8].replace(':', '-')}-{session.id}.jsonl"
    return "/".join((*day.split("-"), name))


def lines_of(session: NewSession, messages: Sequence[Message]) -> Iterator[JsonLine]:
    """The lines of a session's file."""
    meta = {
        "id": session.id,
        "session_id": session.id,
        "timestamp": session.began,
        "cwd": session.cwd,
        "originator": "foredeck",
        "cli_version": _VERSION,
        "source": "cli",
        "thread_source": "user",
        "model_provider": "openai",
    }
    lines = [_line("session_meta", session.began, meta)]
    for message in messages:
        at = stamp(message)
        if message["role"] == "user":
            # The list of sessions shows what its user said by these.
            event = {"type": "user_message", "message": text_in(message["content"]), "images": []}
            lines.append(_line("event_msg", at, event))
        items = _items(session, message)
        lines += [_line("response_item", at, item) for item in items]
        if message["role"] == "assistant" and (text := text_in(message["content"])):
            lines.append(_line("event_msg", at, {"type": "agent_message", "message": text}))
    for number, line in enumerate(lines):
        yield {"timestamp": line["timestamp"], "ordinal": number, **line}


def _line(kind: str, at: str, payload: Mapping[str, Any]) -> JsonLine:
    return {"timestamp": at, "type": kind, "payload": payload}


def _items(session: NewSession, message: Message) -> Iterator[dict[str, Any]]:
    match message["role"]:
        case "assistant":
            yield from _answer(message)
        case "toolResult":
            output: Any = [_given(block) for block in message["content"]]
            if len(output) == 1 and output[0]["type"] == "input_text":
                output = output[0]["text"]
            own = {"call_id": message["toolCallId"], "output": output}
            yield {"type": "function_call_output", **own}
        case role:
            content = [_given(block) for block in message["content"]]
            if role == "custom":
                images = [each for each in content if each["type"] != "input_text"]
                content = [{"type": "input_text", "text": wrapped(message)}, *images]
            id = f"msg_{made_id(session.id, str(message['number']))}"
            yield {"type": "message", "id": id, "role": "user", "content": content}


def _answer(message: Message) -> Iterator[dict[str, Any]]:
    for block in message["content"]:
        if block["type"] == "toolCall":
            arguments = json.dumps(block["arguments"], ensure_ascii=False)
            own = {"name": block["name"], "arguments": arguments, "call_id": block["id"]}
            yield {"type": "function_call", **own}
        else:
            content = [{"type": "output_text", "text": block["text"]}]
            yield {"type": "message", "role": "assistant", "content": content}


def _given(block: Mapping[str, Any]) -> dict[str, Any]:
    if block["type"] == "image":
        url = f"data:{block['mimeType']};base64,{block['data']}"
        return {"type": "input_image", "image_url": url}
    return {"type": "input_text", "text": block["text"]}

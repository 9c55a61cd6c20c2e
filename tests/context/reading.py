"""A prompt as a reviewer reads it: roles, blocks, and a line of it for every line of text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from foredeck.context.messages.shape import Message

Block = dict[str, Any]


def as_read(messages: Sequence[Message]) -> str:
    """The whole prompt. `==` heads a message, `--` a block that is not text, `|` is text."""
    return "\n".join(line for message in messages for line in _message(message))


def _message(message: Message) -> Iterator[str]:
    yield " ".join(["==", *_head(message)])
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    for number, block in enumerate(blocks):
        if number and block.get("type") == "text":
            yield "--"
        yield from _block(block)
    for name in ("command", "output", "summary"):
        if name in message:
            yield from _text(message[name])


def _head(message: Message) -> Iterator[str]:
    yield str(message.get("role"))
    if message.get("role") == "toolResult":
        yield f"{message['toolName']} {message['toolCallId']}"
    if message.get("isError"):
        yield "(error)"
    if message.get("stopReason") in ("aborted", "error"):
        yield f"({message['stopReason']})"


def _block(block: Block) -> Iterator[str]:
    match block.get("type"):
        case "text":
            yield from _text(block["text"])
        case "thinking":
            yield "-- thinking" + (" (sealed)" if block.get("thinkingSignature") else "")
            yield from _text(block["thinking"])
        case "toolCall":
            arguments = json.dumps(block["arguments"], ensure_ascii=False)
            yield f"-- calls {block['name']} {block['id']} {arguments}"
        case kind:
            yield f"-- {kind}"


def _text(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield f"| {line}".rstrip()

"""Messages as the judge compares them: a hash, a size, and their texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.context.messages.items import block_chars
from foredeck.context.messages.shape import UNSENT_STOPS, Message


@dataclass(frozen=True, slots=True)
class Shape:
    """One message of a prompt. Equal hashes mean equal bytes."""

    hash: bytes
    chars: int = field(compare=False)
    texts: tuple[str, ...] = field(compare=False)
    blocks: int = field(default=1, compare=False)
    """Content blocks of the message in a request."""
    role: str = field(default="user", compare=False)
    answers: str = field(default="", compare=False)
    """A tool result: id of the call."""

    @property
    def asks(self) -> bool:
        """Whether the provider takes it as the user's, so that it may be marked."""
        return self.role != "assistant"


def is_sent(message: Message) -> bool:
    """Whether the host sends the message: not if failed, aborted or kept out."""
    if message.get("role") == "assistant":
        return message.get("stopReason") not in UNSENT_STOPS
    return not message.get("excludeFromContext")


def texts_of(message: Message) -> list[str]:
    """Everything in a message that a model reads."""
    content = message.get("content")
    if content is None:
        names = ("command", "output", "summary")
        return [text for name in names if isinstance(text := message.get(name), str)]
    return [text for text in _strings(content) if text]


def blocks_of(message: Message) -> list[dict[str, Any]]:
    content = message.get("content")
    listed = content if isinstance(content, list) else []
    return [block for block in listed if isinstance(block, dict)]


def _strings(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
        return
    for block in blocks_of({"content": content}):
        kind = block.get("type")
        if kind == "toolCall":
            yield str(block.get("name") or "")
            yield from leaves(block.get("arguments"))
        elif kind in ("text", "thinking"):
            yield str(block.get(kind) or "")


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


class Shapes:
    """Shapes of messages, each computed once per content; `keeps` for a caller with parts of
    prompts."""

    def __init__(self, *, keeps: bool = False) -> None:
        self._keeps = keeps
        self._by_hash: dict[bytes, Shape] = {}
        self._by_object: dict[int, tuple[Message, Shape]] = {}

    def of(self, prompt: Sequence[Message]) -> list[Shape]:
        shapes_by_object, shapes = self._by_object, []
        held = shapes_by_object if self._keeps else {}
        for message in prompt:
            if not is_sent(message):
                continue
            # By identity, so that a prompt of a thousand messages with two new ones costs two. The
            # message is held beside its shape: its id would otherwise pass to another object.
            pair = shapes_by_object.get(id(message)) or (message, self._shape(message))
            held[id(message)] = pair
            shapes.append(pair[1])
        self._by_object = held
        return shapes

    def _shape(self, message: Message) -> Shape:
        visible = {k: v for k, v in message.items() if k in _READ_BY_MODELS}
        body = json.dumps(visible, ensure_ascii=False, sort_keys=True)
        digest = hashlib.blake2b(body.encode(errors="surrogatepass"), digest_size=16).digest()
        shape = self._by_hash.get(digest)
        if shape is None:
            shape = Shape(
                digest,
                chars_of(message),
                tuple(texts_of(message)),
                wire_blocks(message),
                str(message.get("role") or ""),
                str(message.get("toolCallId") or ""),
            )
            self._by_hash[digest] = shape
        return shape


def wire_blocks(message: Message) -> int:
    """Content blocks that a message makes in a request; a tool result is one, images and all."""
    if message.get("role") == "toolResult" or not isinstance(message.get("content"), list):
        return 1
    return len([b for b in blocks_of(message) if not _is_empty(b)])


def _is_empty(block: dict[str, Any]) -> bool:
    """Whether the host leaves the block out, as text without a word."""
    if block.get("type") == "thinking":
        return not (block.get("thinking") or block.get("thinkingSignature"))
    return block.get("type") == "text" and not str(block.get("text") or "").strip()


_READ_BY_MODELS = frozenset({"role", "content", "command", "output", "summary", "toolCallId"})


def chars_of(message: Message) -> int:
    if isinstance(message.get("content"), list):
        return sum(map(block_chars, blocks_of(message)))
    return sum(map(len, texts_of(message)))

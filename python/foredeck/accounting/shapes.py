"""Messages as the judge compares them: a hash, a size, and what can be read in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from foredeck.context.messages.identifiers import identifiers
from foredeck.context.messages.items import block_chars
from foredeck.context.quoting import is_reference, is_run
from foredeck.hosts.pi.messages import UNSENT_STOPS
from foredeck.hosts.pi.transcripts import Message


@dataclass(frozen=True, slots=True)
class Shape:
    """One message of a prompt. Equal hashes mean equal bytes."""

    hash: bytes
    chars: int
    texts: tuple[str, ...]
    names: frozenset[str]
    """The identifiers that can be read in it."""
    blocks: int = 1
    """Content blocks that it makes in a request."""
    asks: bool = True
    """Whether the provider takes it as the user's, so that a cache marker may stand on it."""
    answers: str = ""
    """A tool result: id of the call."""
    in_digest: frozenset[str] = frozenset()
    """Those of the names that only the digest of folded results holds."""


def is_sent(message: Message) -> bool:
    """Whether the host sends the message at all: not what failed, was aborted or is kept out."""
    if message.get("role") == "assistant":
        return message.get("stopReason") not in UNSENT_STOPS
    return not message.get("excludeFromContext")


def texts_of(message: Message) -> list[str]:
    """Everything in a message that a model reads, string by string."""
    content = message.get("content")
    if content is None:
        names = ("command", "output", "summary")
        return [text for name in names if isinstance(text := message.get(name), str)]
    return [text for text in _strings(content) if text]


def blocks_of(message: Message) -> list[dict[str, Any]]:
    """The content blocks of a message; none where its content is a text, or no content at all."""
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
    """Every string, and every number as text, inside a JSON value."""
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
    """Shapes of messages, each computed once per content.

    A message object that was in the prompt before is known by its identity, so that a prompt of
    a thousand messages with two new ones costs two. Objects are held for one prompt only.
    """

    def __init__(self) -> None:
        self._by_hash: dict[bytes, Shape] = {}
        self._by_object: dict[int, tuple[Message, Shape]] = {}

    def of(self, prompt: Sequence[Message]) -> list[Shape]:
        """The shapes of the messages of a prompt that are sent, in order."""
        known, held, found = self._by_object, {}, []
        for message in prompt:
            if not is_sent(message):
                continue
            pair = known.get(id(message)) or (message, self._shape(message))
            held[id(message)] = pair
            found.append(pair[1])
        self._by_object = held
        return found

    def _shape(self, message: Message) -> Shape:
        visible = {k: v for k, v in message.items() if k in _TOLD}
        body = json.dumps(visible, ensure_ascii=False, sort_keys=True)
        digest = hashlib.blake2b(body.encode(errors="surrogatepass"), digest_size=16).digest()
        shape = self._by_hash.get(digest)
        if shape is None:
            texts = texts_of(message)
            names = frozenset[str]().union(*map(identifiers, texts))
            shape = Shape(
                digest,
                chars_of(message),
                tuple(texts),
                names,
                wire_blocks(message),
                message.get("role") != "assistant",
                str(message.get("toolCallId") or ""),
                _in_digest(message, texts, names),
            )
            self._by_hash[digest] = shape
        return shape


def _in_digest(message: Message, texts: Sequence[str], names: frozenset[str]) -> frozenset[str]:
    """What the digest of a folded result, or of a run of them, names and its other lines do not."""
    if message.get("role") == "user" and texts and is_run(texts[0]):
        return names - identifiers(texts[0].rpartition("\nnames:")[0] or texts[0])
    if message.get("role") != "toolResult" or not any(map(is_reference, texts)):
        return frozenset()
    lines = (text.partition("\n")[0] if is_reference(text) else text for text in texts)
    return names - frozenset[str]().union(*map(identifiers, lines))


def wire_blocks(message: Message) -> int:
    """Content blocks that a message makes in a request; a tool result is one, images and all."""
    if message.get("role") == "toolResult" or not isinstance(message.get("content"), list):
        return 1
    return len([b for b in blocks_of(message) if not _is_empty(b)])


def _is_empty(block: dict[str, Any]) -> bool:
    """Text and unsigned thinking without a word is left out by the host."""
    if block.get("type") == "thinking":
        return not (block.get("thinking") or block.get("thinkingSignature"))
    return block.get("type") == "text" and not str(block.get("text") or "").strip()


_TOLD = frozenset({"role", "content", "command", "output", "summary", "toolCallId"})


def chars_of(message: Message) -> int:
    """Characters that a model reads of a message; an image counts as `IMAGE_CHARS`."""
    if isinstance(message.get("content"), list):
        return sum(map(block_chars, blocks_of(message)))
    return sum(map(len, texts_of(message)))

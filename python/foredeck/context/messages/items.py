"""A host message as this package sees it: neutral, read once, never changed.

A host's adapter makes items of its own messages. Content blocks keep the shape in which all hosts
that we know write them: `{"type": "text", "text": ...}`, `{"type": "image", ...}`,
`{"type": "thinking", ...}`, `{"type": "toolCall", "id", "name", "arguments"}`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any, NamedTuple, overload

from foredeck.model.messages import MessageKey, MessageKind
from foredeck.model.own_tools import OWN_TOOLS

Block = dict[str, Any]
IMAGE_CHARS = 4800
"""What an image counts for where only characters are counted (about 1,200 tokens)."""


@dataclass(slots=True)
class ToolUse:
    """A tool call inside an assistant message."""

    id: str
    tool: str
    arguments: dict[str, Any]


@dataclass(slots=True)
class NestedUse(ToolUse):
    """A call that a tool made while it ran, as the host notes it: never with its result."""

    failed: bool
    """Also one that had not ended when its script did."""


class PromptUsage(NamedTuple):
    """Tokens that the provider counted of the prompt which an assistant message answers."""

    fresh: int
    """Neither read from the cache nor written to it."""
    read: int
    written: int

    @property
    def total(self) -> int:
        """All of the prompt."""
        return self.fresh + self.read + self.written


@dataclass(slots=True)
class Item:
    """One message of the conversation, in the order in which the host has it."""

    key: MessageKey
    kind: MessageKind
    blocks: list[Block]
    time_ms: int = 0
    calls: list[ToolUse] = field(default_factory=list)
    """Assistant: the tools that it asks for."""
    call_id: str = ""
    """Result: the provider's id of the call that it answers."""
    tool: str = ""
    failed: bool = False
    details: Any = None
    nested: list[NestedUse] = field(default_factory=list)
    """Result: the calls that its tool made while it ran, in the order in which they began."""
    signed: bool = False
    """Assistant: carries signed or encrypted reasoning, which may be bound to what precedes it."""
    unsent: bool = False
    """Assistant: aborted or failed; the host leaves it out of what it sends."""
    meta: dict[str, Any] = field(default_factory=dict)
    """Assistant: where it came from and what it cost."""
    extras: dict[str, Any] = field(default_factory=dict)
    """What else the host gave, by the host's names: neither the model nor the engine reads it."""
    usage: PromptUsage | None = None
    """Assistant: what its provider reported, None where it did not."""
    model: str = ""
    """Assistant: the model that wrote it, as `provider/id`."""
    turn: int = 0
    """Ordinal of the user turn, from 1; 0 before the first user message."""
    results_before: int = 0
    """Result: how many counted results came before it in its turn."""
    text: str = ""
    """Result: its text blocks, joined."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """Result: what the call asked for, filled in where the call is known."""

    @property
    def chars(self) -> int:
        """Characters that the model reads when the message goes out as the host has it."""
        return 0 if self.unsent or self.kind == "opaque" else blocks_chars(self.blocks)

    @property
    def own_chars(self) -> int:
        """Those of them that are calls of our tools and their results."""
        if self.kind == "result":
            return self.chars if self.tool in OWN_TOOLS else 0
        if self.unsent or not any(call.tool in OWN_TOOLS for call in self.calls):
            return 0
        calls = (block for block in self.blocks if block.get("type") == "toolCall")
        return blocks_chars(block for block in calls if block.get("name") in OWN_TOOLS)

    @property
    def said(self) -> str:
        """All that it says, without thinking; an image as a word."""
        texts = (
            str(block.get("text") or "") if block.get("type") == "text" else "(image)"
            for block in self.blocks
            if block.get("type") in ("text", "image")
        )
        return "\n".join(texts)

    @property
    def has_image(self) -> bool:
        """Whether any block is an image."""
        return any(block.get("type") == "image" for block in self.blocks)


def text_block(text: str) -> Block:
    """A text block of ours; its keys are in the order in which a stored one comes back."""
    return {"text": text, "type": "text"}


def block_chars(block: Block) -> int:
    """Characters of one block as the model reads it; an image counts as `IMAGE_CHARS`."""
    kind = block.get("type")
    if kind == "text":
        return len(block.get("text") or "")
    if kind == "thinking":
        return len(block.get("thinking") or "")
    if kind == "image":
        return IMAGE_CHARS
    if kind == "toolCall":
        return len(block.get("name") or "") + value_chars(block.get("arguments"))
    return 0


def blocks_chars(blocks: Iterable[Block]) -> int:
    """Characters of a list of blocks."""
    return sum(map(block_chars, blocks))


def value_chars(value: Any) -> int:
    """Roughly the length of a value as JSON, without writing it."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, dict):
        return sum(len(key) + 4 + value_chars(item) for key, item in value.items()) + 2
    if isinstance(value, list):
        return sum(value_chars(item) + 1 for item in value) + 2
    return 4


def message_text(message: dict[str, Any]) -> str:
    """The text of a message whose content is a string or a list of blocks."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = [block.get("text") for block in content or () if isinstance(block, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


class JoinedItems(Sequence[Item]):
    """The first `count` items of a list that may go on, and new ones after them."""

    # Nothing is copied: copying the list of a long session takes a call a tenth of its time.

    __slots__ = ("_count", "_held", "_new")

    def __init__(self, held: Sequence[Item], count: int, new: Sequence[Item]) -> None:
        self._held, self._count, self._new = held, count, new

    def __len__(self) -> int:
        return self._count + len(self._new)

    def __iter__(self) -> Iterator[Item]:
        yield from islice(self._held, self._count)
        yield from self._new

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> list[Item]: ...
    def __getitem__(self, at: int | slice) -> Item | list[Item]:
        if isinstance(at, slice):
            return [self[index] for index in range(*at.indices(len(self)))]
        index = range(len(self))[at]
        return self._held[index] if index < self._count else self._new[index - self._count]


ROOT_TIP = "0" * 32


def next_tip(tip: str, key: MessageKey) -> str:
    """The rolling hash after one more message: equal tips mean equal message lists."""
    # The entry id stays out of it: a host that does not always know it must not make known messages
    # look new. Content has time stamps and call ids, which distinguish messages, and stays what it
    # is through restarts, forks and `/tree`.
    return hashlib.sha256(f"{tip}\0{key.address}".encode()).hexdigest()[:32]


def tips_of(keys: Iterable[MessageKey]) -> list[str]:
    """The rolling hashes of a list: after its first message, after its second, and so on."""
    return list(accumulate(keys, next_tip, initial=ROOT_TIP))[1:]

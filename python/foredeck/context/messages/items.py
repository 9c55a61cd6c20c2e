"""A host message in neutral form, never changed.

Content blocks have the stored shape (`shape.py`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any, NamedTuple, overload

from foredeck.commands import split_cd
from foredeck.model.figures import shortened
from foredeck.model.messages import MessageKey, MessageKind
from foredeck.model.own_tools import OWN_TOOLS

ARGS_CHARS = 100

_LINE_END = re.compile(r"(?<![&|;{(\\])[ \t]*\n\s*")

_MOVES = re.compile(r"\b(?:cd|pushd)\b")


def args_display(args: Mapping[str, Any], cwd: str = "") -> str:
    """The command, the path, or the JSON; paths relative to `cwd`."""
    text = json.dumps(args, ensure_ascii=False, sort_keys=True) if args else ""
    for name in ("command", "path", "file_path", "pattern", "query", "url", "id"):
        value = args.get(name)
        if isinstance(value, str) and value:
            extra = [
                f"{key}={relative_path(str(args[key]), cwd)}"
                for key in ("path", "glob", "offset", "limit")
                if key != name and isinstance(args.get(key), str | int)
            ]
            main = _command(value, cwd) if name == "command" else relative_path(value, cwd)
            text = " ".join([main, *extra])
            break
    return shortened(text, ARGS_CHARS)


def _command(command: str, cwd: str) -> str:
    folder, rest = split_cd(command.strip())
    here, folder = cwd.rstrip("/"), relative_path((folder or ".").rstrip("/") or "/", cwd)
    if folder in (here, "."):
        if here and not _MOVES.search(rest):
            rest = re.sub(rf"(?<![\w./~-]){re.escape(here)}/(?=[\w.])", "", rest)
    else:
        rest = f"cd {folder} && {rest}"
    return _LINE_END.sub("; ", rest.strip()).replace("\\\n", " ")


def relative_path(text: str, cwd: str) -> str:
    folder = cwd.rstrip("/") + "/"
    return text[len(folder) :] if len(folder) > 1 and text.startswith(folder) else text


Block = dict[str, Any]
IMAGE_CHARS = 4800
"""An image in characters, about 1,200 tokens."""


@dataclass(slots=True)
class ToolUse:
    id: str
    tool: str
    arguments: dict[str, Any]


@dataclass(slots=True)
class NestedUse(ToolUse):
    failed: bool
    """Also set if unfinished when its script ended."""


class PromptUsage(NamedTuple):
    """The provider's token counts of an answer's prompt."""

    fresh: int
    """Neither read from the cache nor written."""
    read: int
    written: int

    @property
    def total(self) -> int:
        return self.fresh + self.read + self.written


@dataclass(slots=True)
class Item:
    """One message of the host's list."""

    key: MessageKey
    kind: MessageKind
    blocks: list[Block]
    time_ms: int = 0
    calls: list[ToolUse] = field(default_factory=list)
    """Assistant: the tools that it calls."""
    call_id: str = ""
    tool: str = ""
    failed: bool = False
    details: Any = None
    nested: list[NestedUse] = field(default_factory=list)
    signed: bool = False
    """Has signed or encrypted reasoning."""
    unsent: bool = False
    """Aborted or failed, so the host does not send it."""
    meta: dict[str, Any] = field(default_factory=dict)
    """Assistant: origin and cost."""
    extras: dict[str, Any] = field(default_factory=dict)
    """Fields read by neither model nor engine."""
    usage: PromptUsage | None = None
    """Assistant: the provider's report, if any."""
    model: str = ""
    """Assistant: its model, as `provider/id`."""
    turn: int = 0
    """User turn from 1; 0 before the first."""
    results_before: int = 0
    """Number of counted results before it in its turn."""
    text: str = ""
    """Result: its text blocks, joined."""
    took_ms: int | None = None
    """Result: how long its tool ran."""
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def chars(self) -> int:
        """Characters that the model reads of the host's form."""
        return 0 if self.unsent or self.kind == "opaque" else blocks_chars(self.blocks)

    @property
    def own_chars(self) -> int:
        if self.kind == "result":
            return self.chars if self.tool in OWN_TOOLS else 0
        if self.unsent or not any(call.tool in OWN_TOOLS for call in self.calls):
            return 0
        calls = (block for block in self.blocks if block.get("type") == "toolCall")
        return blocks_chars(block for block in calls if block.get("name") in OWN_TOOLS)

    @property
    def said(self) -> str:
        """All text without thinking; an image as a word."""
        texts = (
            str(block.get("text") or "") if block.get("type") == "text" else "(image)"
            for block in self.blocks
            if block.get("type") in ("text", "image")
        )
        return "\n".join(texts)

    @property
    def has_image(self) -> bool:
        return any(block.get("type") == "image" for block in self.blocks)


def text_block(text: str) -> Block:
    return {"text": text, "type": "text"}


def block_chars(block: Block) -> int:
    """Characters of a block as the model reads it; an image counts as `IMAGE_CHARS`."""
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
    return sum(map(block_chars, blocks))


def value_chars(value: Any) -> int:
    """Approximate length as JSON, without writing it."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, dict):
        return sum(len(key) + 4 + value_chars(item) for key, item in value.items()) + 2
    if isinstance(value, list):
        return sum(value_chars(item) + 1 for item in value) + 2
    return 4


def message_text(message: dict[str, Any]) -> str:
    """The text of a message whose content is a string or blocks."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = [block.get("text") for block in content or () if isinstance(block, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


class JoinedItems(Sequence[Item]):
    """The first `count` items of a growing list, then new ones."""

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
    """The rolling hash after one more message."""
    # The entry id stays out of it: a host that does not always know it must not make known messages
    # look new. Content has time stamps and call ids, which distinguish messages, and stays what it
    # is through restarts, forks and `/tree`.
    return hashlib.sha256(f"{tip}\0{key.address}".encode()).hexdigest()[:32]


def tips_of(keys: Iterable[MessageKey]) -> list[str]:
    """The rolling hashes after each message."""
    return list(accumulate(keys, next_tip, initial=ROOT_TIP))[1:]


IMAGE_BEGINS = {"png": b"\x89PNG\r\n\x1a\n", "jpeg": b"\xff\xd8", "gif": b"GIF8"}


def image_block(raw: bytes) -> dict[str, Any] | None:
    """The block of a PNG, JPEG, GIF or WebP file; None for anything else."""
    kind = next((kind for kind, begins in IMAGE_BEGINS.items() if raw.startswith(begins)), "")
    if raw.startswith(b"RIFF") and raw[8:12] == b"WEBP":
        kind = "webp"
    if not kind:
        return None
    data = base64.b64encode(raw).decode()
    return {"type": "image", "data": data, "mimeType": f"image/{kind}"}

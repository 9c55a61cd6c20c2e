"""Layout `pools`: the seeds' own order, stateless (SSOT 4.1, 4.2; seed 1, 21).

Metadata of every object in the pool stands first, then the chat, in which every result is a
reference line, then the content of the active objects. It is written anew at every call.
"""

from __future__ import annotations

from typing import Any

from foredeck.context.messages.items import Block, Item, text_block
from foredeck.context.rendering.layout import Placed, Scene, full_part, is_garbled, reference_part
from foredeck.context.wording import (
    active_heading,
    empty,
    handle,
    no_content,
    not_text,
    object_line,
    old_version,
    pool_heading,
)

WHOLE_CHARS = 50_000
"""A longer file is not shown whole, only as far as it was read."""


class Pools:
    """See the module."""

    name = "pools"
    keeps_bytes = False

    def place(self, scene: Scene, placed: Placed) -> None:
        """A reference line; the content stands at the end while the object is active.

        An old version stands where it was asked for: what is active is the newest.
        """
        item, subject, version = (
            scene.conversation.items[placed.index],
            placed.subject,
            placed.version,
        )
        if subject is None:
            scene.render(placed.index, full_part(item, placed))
            return
        if version is not None and version < scene.newest(subject):
            scene.render(placed.index, full_part(item, placed, old_version(subject, version)))
            return
        scene.conversation.parts[placed.index].subject = subject
        part = reference_part(scene, placed.index)
        part.version, part.text_hash = version, placed.text_hash
        scene.render(placed.index, part)

    def fold(self, scene: Scene, indexes: set[int]) -> None:
        """Results are references already; what is no longer active is simply not listed."""
        for index in sorted(indexes):
            part = scene.conversation.parts[index]
            if part.form in ("host", "full") and part.subject is not None:
                scene.render(index, reference_part(scene, index))

    def inserts(self, scene: Scene) -> dict[int, list[dict[str, Any]]]:
        """The metadata pool before the chat, the active content after it."""
        found: dict[int, list[dict[str, Any]]] = {}
        self.fold(scene, _as_the_host_sent_them(scene))
        lines = [self._line(scene, ordinal) for ordinal in sorted(scene.sets.pool)]
        if lines:
            found[0] = [text_block("\n".join([pool_heading(), *lines]))]
        blocks = [
            block
            for ordinal in sorted(scene.sets.active)
            for block in self._content(scene, ordinal)
        ]
        if blocks:
            found[len(scene.conversation)] = [text_block(active_heading()), *blocks]
        return found

    def _line(self, scene: Scene, ordinal: int) -> str:
        return object_line(ordinal, scene.describe(ordinal))

    def _content(self, scene: Scene, ordinal: int) -> list[Block]:
        """A file as it is now; anything else, and a long file, as results have shown it."""
        text = scene.content(ordinal)
        if scene.describe(ordinal).get("state") == "deleted":
            return [text_block(no_content(ordinal, "it was deleted"))]
        if text is not None and len(text) <= WHOLE_CHARS:
            return [text_block(f"{handle(ordinal)}\n{text}" if text else empty(ordinal))]
        blocks = [block for item in _shown(scene, ordinal) for block in _blocks(item, ordinal)]
        return [block for n, block in enumerate(blocks) if block not in blocks[:n]]


def _as_the_host_sent_them(scene: Scene) -> set[int]:
    """Results that went out without us: they take the form of the others."""
    parts = enumerate(scene.conversation.parts)
    return {index for index, part in parts if part.form == "host" and part.subject is not None}


def _shown(scene: Scene, ordinal: int) -> list[Item]:
    """The results that carry an object's content and are still wanted, else the newest one."""
    conversation = scene.conversation
    every = [i for i, part in enumerate(conversation.parts) if part.subject == ordinal]
    live = [index for index in every if index in conversation.live]
    return [conversation.items[index] for index in live or every[-1:]]


def _blocks(item: Item, ordinal: int) -> list[Block]:
    if is_garbled(item):
        return [text_block(not_text(handle(ordinal), len(item.text)))]
    text = [text_block(f"{handle(ordinal)}\n{item.text}")] if item.text else []
    return [*text, *(block for block in item.blocks if block.get("type") == "image")]

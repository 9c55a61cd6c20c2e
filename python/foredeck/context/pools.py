"""Layout `pools`: the seeds' own order, stateless (SSOT 4.1, 4.2; seed 1, 21).

Metadata of every object in the pool stands first, then the chat, in which every result is a
reference line, then the content of the active objects. It is written anew at every call.
"""

from __future__ import annotations

from typing import Any

from foredeck.context.items import text_block
from foredeck.context.layout import Placed, Scene, full_part, reference_part
from foredeck.context.wording import active_heading, object_line, pool_heading


class Pools:
    """See the module."""

    name = "pools"
    keeps_bytes = False

    def place(self, scene: Scene, placed: Placed) -> None:
        """A reference line; the content stands at the end while the object is active."""
        if placed.subject is None:
            scene.render(placed.index, full_part(scene.conversation.items[placed.index], placed))
            return
        scene.conversation.parts[placed.index].subject = placed.subject
        part = reference_part(scene, placed.index)
        part.version, part.text_hash = placed.version, placed.text_hash
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

    def _content(self, scene: Scene, ordinal: int) -> list[dict[str, Any]]:
        text = scene.content(ordinal)
        if not text:
            return []
        return [text_block(f"@{ordinal}\n{text}")]

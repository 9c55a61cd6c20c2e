"""Layout `anchored`: every message is rendered once and stays where and as it is.

A result carries its content in its own message. When the content goes, at a rebase, a line that
refers to it takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from foredeck.context.digests import digest
from foredeck.context.messages.identifiers import identifiers
from foredeck.context.messages.items import Block, Item, text_block
from foredeck.context.messages.parts import Part
from foredeck.context.rendering.layout import (
    HANDLE_FROM_CHARS,
    NewResult,
    RenderContext,
    folded_part,
    full_part,
    is_only_receipt,
    shown_name,
    shown_text,
    stand_alone,
)
from foredeck.context.rendering.savings import contains_lines, short_difference, shown_lines
from foredeck.context.rendering.view import names_in_view
from foredeck.context.wording import (
    contained,
    difference,
    newer_copy,
    old_version,
    older_copy,
    unchanged,
)

SHOWING_FILES = frozenset({"read", "activate", "pin"})
"""Tools whose result is a file's text as it stands."""


class Anchored:
    """See the module."""

    name = "anchored"
    keeps_bytes = True

    def place(self, context: RenderContext, placed: NewResult) -> None:
        """Content under its handle, or less where a visible copy says it already."""
        item = context.conversation.items[placed.index]
        part = self._saving(context, placed, item) or full_part(
            item, placed, self._head(context, placed)
        )
        context.render(placed.index, part)
        if part.base is not None:
            context.conversation.refer(part.base, placed.index)
        if part.subject is not None and part.subject != placed.subject:
            # What can be read is the other object: it is in use, and this one is not shown.
            context.sets.activate(part.subject)
            context.branch.release_object(placed.subject or 0)

    def fold(self, context: RenderContext, indexes: set[int]) -> None:
        """Put reference lines in place of contents. What referred to one of them is rendered so
        that it needs nothing above it: a difference in full, the rest as a reference line."""
        conversation = context.conversation
        held = names_in_view(conversation, indexes) if indexes and context.digests.chars else set()
        for index in sorted(indexes):
            item = conversation.items[index]
            digest_text = ""
            if not is_only_receipt(conversation, index):
                text = shown_text(conversation, index)
                digest_text = digest(
                    item.tool, item.arguments, text, held=held, size=context.digests
                )
            # What one digest leaves in view, the next need not name.
            held |= identifiers(digest_text)
            context.render(index, folded_part(context, index, digest_text))
        stand_alone(context, indexes)

    def inserts(
        self, context: RenderContext, standing: Sequence[Block] = ()
    ) -> dict[int, list[Block]]:
        """None: nothing stands between messages."""
        del context, standing
        return {}

    def _head(self, context: RenderContext, placed: NewResult) -> str | None:
        """A head that names the version, where it is old or another one stays visible."""
        if placed.subject is None or placed.version is None:
            return None
        other = context.conversation.newest_holder(placed.subject)
        shown = None if other is None else context.conversation.parts[other].version
        if shown is not None and shown > placed.version:
            return older_copy(placed.subject, placed.version)
        if placed.version < context.newest(placed.subject):
            return old_version(placed.subject, placed.version)
        if shown is None or shown == placed.version:
            return None
        return newer_copy(placed.subject, placed.version)

    def _saving(self, context: RenderContext, placed: NewResult, item: Item) -> Part | None:
        if placed.subject is None or item.has_image or item.chars < HANDLE_FROM_CHARS:
            # A shorter text would be said again in as many words, and shows no handle.
            return None
        return (
            self._same(context, placed)
            or self._contained(context, placed, item)
            or self._difference(context, placed, item)
        )

    def _same(self, context: RenderContext, placed: NewResult) -> Part | None:
        """The very text is visible already."""
        conversation = context.conversation
        base = conversation.newest_with(placed.text_hash)
        if base is None or conversation.items[base].failed != _failed(context, placed):
            return None
        subject, version = conversation.parts[base].subject, conversation.parts[base].version
        if subject is None:
            return None
        if subject != placed.subject:
            placed = replace(placed, version=version)
        text = unchanged(shown_name(conversation, base, subject, context.cwd))
        return _referring_part("same", text, subject, placed, base)

    def _contained(self, context: RenderContext, placed: NewResult, item: Item) -> Part | None:
        """A read of lines that a visible read of the same file holds."""
        base = _visible_read(context, placed, item)
        if base is None or placed.subject is None:
            return None
        visible = context.conversation.items[base]
        shown = shown_text(context.conversation, base)
        if not contains_lines(shown_lines(visible, shown), shown_lines(item, item.text)):
            return None
        text = contained(shown_name(context.conversation, base, placed.subject, context.cwd))
        return _referring_part("same", text, placed.subject, placed, base)

    def _difference(self, context: RenderContext, placed: NewResult, item: Item) -> Part | None:
        """A read that differs little from the visible one of the same lines."""
        base = _visible_read(context, placed, item)
        if base is None or placed.subject is None or placed.version is None:
            return None
        conversation = context.conversation
        visible = conversation.items[base]
        if placed.version < (conversation.parts[base].version or 0):
            return None
        if _range(visible) != _range(item):
            return None
        diff = short_difference(shown_text(conversation, base), item.text)
        if diff is None:
            return None
        text = difference(placed.subject, placed.version, diff)
        return _referring_part("diff", text, placed.subject, placed, base)


def _failed(context: RenderContext, placed: NewResult) -> bool:
    return context.conversation.items[placed.index].failed


def _referring_part(form: Any, text: str, subject: int, placed: NewResult, base: int) -> Part:
    block = text_block(text)
    return Part(form, [block], subject, placed.version, base, placed.text_hash)


def _visible_read(context: RenderContext, placed: NewResult, item: Item) -> int | None:
    """The newest message that shows the same file by a whole copy, for what shows a file."""
    if item.tool not in SHOWING_FILES or item.failed or placed.text_hash is None:
        return None
    if placed.subject is None:
        return None
    conversation = context.conversation
    for index in reversed(conversation.holders.get(placed.subject, [])):
        shown = conversation.items[index]
        shows_file = shown.tool in SHOWING_FILES or shown_text(conversation, index) != shown.text
        if shows_file and conversation.parts[index].form in ("full", "host"):
            return index
    return None


def _range(item: Item) -> tuple[Any, Any]:
    return item.arguments.get("offset"), item.arguments.get("limit")

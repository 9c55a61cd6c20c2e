"""Layout `anchored`: every message is rendered once and stays where and as it is.

A result carries its content in its own message. When the content goes, at a rebase, a line that
refers to it takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from foredeck.context.digests import digest
from foredeck.context.messages.items import Block, Item, text_block
from foredeck.context.plan.ops import Op, Shown
from foredeck.context.rendering.context import RenderContext
from foredeck.context.rendering.layout import (
    HANDLE_FROM_CHARS,
    contains_lines,
    folded,
    full,
    is_only_receipt,
    render_dependents,
    short_difference,
    shown_lines,
    shown_name,
    shown_text,
)
from foredeck.context.wording import (
    contained,
    difference,
    newer_copy,
    old_version,
    older_copy,
    unchanged,
)
from foredeck.model.names import identifiers

SHOWING_FILES = frozenset({"read", "activate", "pin"})
"""Tools whose result is a file's text as it is."""


class Anchored:
    """See the module."""

    name = "anchored"
    keeps_bytes = True

    def place(self, context: RenderContext, index: int, shown: Shown | None) -> None:
        """Content under its handle, or less where a visible copy says it already."""
        plan = context.plan
        op: Op = self._saving(context, index, shown) or full(
            plan.items[index], shown, self._head(context, shown)
        )
        plan.write(index, op)
        if op.base is not None:
            context.branch.keep_base(op.base)
        if shown is not None and op.subject is not None and op.subject != shown.object:
            # What can be read is the other object: it is in use, and this one is not shown.
            context.sets.activate(op.subject)
            context.branch.release_object(shown.object)

    def fold(self, context: RenderContext, indexes: set[int]) -> None:
        """Put reference lines in place of contents. What referred to one of them is rendered so
        that it needs nothing above it (`render_dependents`)."""
        plan = context.plan
        held = context.names.in_view(plan, indexes) if indexes and context.digests.chars else set()
        for index in sorted(indexes):
            item = plan.items[index]
            digest_text = ""
            if not is_only_receipt(plan, index):
                text = shown_text(plan, index)
                digest_text = digest(
                    item.tool, item.arguments, text, held=held, size=context.digests
                )
            # What one digest leaves in view, the next need not name.
            held |= identifiers(digest_text)
            plan.write(index, folded(context, index, digest_text))
        render_dependents(context, indexes)

    def inserts(self, context: RenderContext, held: Sequence[Block] = ()) -> dict[int, list[Block]]:
        """None: this layout puts nothing between messages."""
        del context, held
        return {}

    def _head(self, context: RenderContext, placed: Shown | None) -> str | None:
        """A head that names the version, where it is old or another one stays visible."""
        if placed is None or placed.version is None:
            return None
        other = context.plan.newest_holder(placed.object)
        visible = None if other is None else context.plan.ops[other].version
        if visible is not None and visible > placed.version:
            return older_copy(placed.object, placed.version)
        if placed.version < context.newest(placed.object):
            return old_version(placed.object, placed.version)
        if visible is None or visible == placed.version:
            return None
        return newer_copy(placed.object, placed.version)

    def _saving(self, context: RenderContext, index: int, placed: Shown | None) -> Op | None:
        item = context.plan.items[index]
        if placed is None or item.has_image or item.chars < HANDLE_FROM_CHARS:
            # A shorter text would be said again in as many words, and shows no handle.
            return None
        return (
            self._same(context, item, placed)
            or self._contained(context, item, placed)
            or self._difference(context, item, placed)
        )

    def _same(self, context: RenderContext, item: Item, placed: Shown) -> Op | None:
        """The very text is visible already."""
        plan = context.plan
        base = max(plan.texts.get(placed.text_hash or "", ()), default=None)
        # The same words mean something else as an error.
        if base is None or plan.items[base].failed != item.failed:
            return None
        visible = plan.ops[base].shown
        if visible is None:
            return None
        shown = replace(placed, object=visible.object)
        if visible.object != placed.object:
            shown = replace(shown, version=visible.version)
        text = unchanged(shown_name(plan, base, visible.object, context.cwd))
        return Op("same", [text_block(text)], shown, base)

    def _contained(self, context: RenderContext, item: Item, placed: Shown) -> Op | None:
        """A read of lines that a visible read of the same file holds."""
        base = _visible_read(context, item, placed)
        if base is None:
            return None
        visible = context.plan.items[base]
        text = shown_text(context.plan, base)
        if not contains_lines(shown_lines(visible, text), shown_lines(item, item.text)):
            return None
        text = contained(shown_name(context.plan, base, placed.object, context.cwd))
        return Op("same", [text_block(text)], placed, base)

    def _difference(self, context: RenderContext, item: Item, placed: Shown) -> Op | None:
        """A read that differs little from the visible one of the same lines."""
        base = _visible_read(context, item, placed)
        if base is None or placed.version is None:
            return None
        plan = context.plan
        if placed.version < (plan.ops[base].version or 0):
            return None  # it would read like a change that takes the newer version back
        if _range(plan.items[base]) != _range(item):
            return None
        diff = short_difference(shown_text(plan, base), item.text)
        if diff is None:
            return None
        text = difference(placed.object, placed.version, diff)
        return Op("diff", [text_block(text)], placed, base)


def _visible_read(context: RenderContext, item: Item, placed: Shown) -> int | None:
    """The newest message that shows the same file by a whole copy, for what shows a file."""
    if item.tool not in SHOWING_FILES or item.failed or placed.text_hash is None:
        return None
    plan = context.plan
    for index in reversed(plan.holders.get(placed.object, [])):
        shown = plan.items[index]
        shows_file = shown.tool in SHOWING_FILES or shown_text(plan, index) != shown.text
        if shows_file and plan.ops[index].form in ("full", "host"):
            return index
    return None


def _range(item: Item) -> tuple[Any, Any]:
    return item.arguments.get("offset"), item.arguments.get("limit")

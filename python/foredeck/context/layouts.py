"""Two layouts: each turns results into operations, and decides what changes at a rebase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from foredeck.context.digests import digest
from foredeck.context.messages.items import Block, Item, text_block
from foredeck.context.plan.ops import Op, Shown
from foredeck.context.plan.plan import Plan
from foredeck.context.rebase import first_mutable
from foredeck.context.rendering import (
    HANDLE_FROM_CHARS,
    RenderContext,
    describe_folded,
    folded,
    full,
    is_garbled,
    is_only_receipt,
    referring,
    referring_to_active,
    render_dependents,
    short_difference,
    shown_name,
    shown_text,
)
from foredeck.context.wording import (
    active_heading,
    contained,
    difference,
    empty,
    handle,
    newer_copy,
    newly_active_heading,
    no_content,
    not_text,
    object_line,
    old_version,
    older_copy,
    pool_heading,
    unchanged,
)
from foredeck.errors import ConfigError
from foredeck.model.names import identifiers
from foredeck.sources.tool_calls import parse_read_range

SHOWING_FILES = frozenset({"read", "activate", "pin"})
"""Tools whose result is a file's plain text."""


class Layout(Protocol):
    """Decides the bytes."""

    name: str
    keeps_bytes: bool
    """Whether sent bytes stay until a rebase; else each call renders everything."""

    def place(self, context: RenderContext, index: int, shown: Shown | None) -> None:
        """Renders a new result, which carries `shown`."""

    def fold(self, context: RenderContext, indexes: set[int]) -> None:
        """Rewrites the prompt without these messages' content."""

    def inserts(self, context: RenderContext, held: Sequence[Block] = ()) -> dict[int, list[Block]]:
        """Blocks to put between messages; `held`: those that sealed reasoning keeps in place."""


class Anchored:
    """Renders each message once, with content in its own result; at a rebase a line replaces
    content that goes."""

    name = "anchored"
    keeps_bytes = True

    def place(self, context: RenderContext, index: int, shown: Shown | None) -> None:
        """Content under its handle, or less if a visible copy has it."""
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
        """Replaces contents by lines, and renders what referred to them."""
        plan = context.plan
        names = context.names.in_view(plan, indexes) if indexes and context.digests.chars else set()
        for index in sorted(indexes):
            item = plan.items[index]
            digest_text = ""
            if not is_only_receipt(plan, index):
                text = shown_text(plan, index)
                digest_text = digest(
                    item.tool, item.arguments, text, held=names, size=context.digests
                )
            # What one digest leaves in view, the next need not name.
            names |= identifiers(digest_text)
            plan.write(index, folded(context, index, digest_text))
        describe_folded(context, indexes)
        render_dependents(context, indexes)

    def inserts(self, context: RenderContext, held: Sequence[Block] = ()) -> dict[int, list[Block]]:
        del context, held
        return {}

    def _head(self, context: RenderContext, placed: Shown | None) -> str | None:
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
        plan = context.plan
        base = max(plan.texts.get(placed.text_hash or "", ()), default=None)
        # The same words mean something else as an error.
        if base is None or plan.items[base].failed != item.failed:
            return None
        visible = plan.ops[base].shown
        if visible is None:
            return None
        content = replace(placed, object=visible.object)
        if visible.object != placed.object:
            content = replace(content, version=visible.version)
        text = unchanged(shown_name(plan, base, visible.object, context.cwd))
        return Op("same", [text_block(text)], content, base)

    def _contained(self, context: RenderContext, item: Item, placed: Shown) -> Op | None:
        base = _visible_read(context, item, placed)
        if base is None or not _holds_lines(context.plan, base, item):
            return None
        text = contained(shown_name(context.plan, base, placed.object, context.cwd))
        return Op("same", [text_block(text)], placed, base)

    def _difference(self, context: RenderContext, item: Item, placed: Shown) -> Op | None:
        base = _visible_read(context, item, placed)
        if base is None or placed.version is None:
            return None
        plan = context.plan
        if placed.version < (plan.ops[base].version or 0):
            return None  # it would read like a change that takes the newer version back
        if _range(_read_by(plan, base)) != _range(item.arguments):
            return None
        diff = short_difference(shown_text(plan, base), item.text)
        if diff is None:
            return None
        text = difference(placed.object, placed.version, diff)
        return Op("diff", [text_block(text)], placed, base)


def _visible_read(context: RenderContext, item: Item, placed: Shown) -> int | None:
    if item.tool not in SHOWING_FILES or item.failed or placed.text_hash is None:
        return None
    plan = context.plan
    for index in reversed(plan.holders.get(placed.object, [])):
        candidate = plan.items[index]
        shows_file = candidate.tool in SHOWING_FILES or shown_text(plan, index) != candidate.text
        if shows_file and plan.ops[index].form in ("full", "host"):
            return index
    return None


def _holds_lines(plan: Plan, base: int, item: Item) -> bool:
    """Whether `base` shows a read's lines under the same numbers."""
    visible = parse_read_range(_read_by(plan, base), shown_text(plan, base))
    new = parse_read_range(item.arguments, item.text)
    if visible is None or new is None or not new.text.strip("\n"):
        return False
    if new.last == new.total and visible.last != new.last:
        # The file ends here now: where the copy goes on, "unchanged" would say that it does not.
        return False
    # Not anywhere in the copy: lines that have moved are no longer where the model would look.
    start, lines = new.first - visible.first, new.text.split("\n")
    return start >= 0 and visible.text.split("\n")[start : start + len(lines)] == lines


def _read_by(plan: Plan, index: int) -> Mapping[str, Any]:
    item = plan.items[index]
    return item.arguments if shown_text(plan, index) == item.text else {}


def _range(arguments: Mapping[str, Any]) -> tuple[Any, Any]:
    return arguments.get("offset"), arguments.get("limit")


WHOLE_CHARS = 50_000
"""Longer files are shown only as far as they were read."""


class Pools:
    """Metadata of pooled objects, then the chat with lines, then active content.

    Rendered anew at every call, except what the turn's sealed reasoning binds.
    """

    name = "pools"
    keeps_bytes = False

    def place(self, context: RenderContext, index: int, shown: Shown | None) -> None:
        """A line, as active content is at the end; an old version stays where it was asked for."""
        plan, item = context.plan, context.plan.items[index]
        if shown is None:
            plan.write(index, full(item, None))
        elif shown.version is not None and shown.version < context.newest(shown.object):
            plan.write(index, full(item, shown, old_version(shown.object, shown.version)))
        else:
            plan.write(index, referring(context, index, shown=shown))

    def fold(self, context: RenderContext, indexes: set[int]) -> None:
        """Turns contents into references; inactive objects are not listed."""
        for index in sorted(indexes):
            op = context.plan.ops[index]
            if op.form in ("host", "full") and op.subject is not None:
                context.plan.write(index, referring(context, index))

    def inserts(self, context: RenderContext, held: Sequence[Block] = ()) -> dict[int, list[Block]]:
        """The pool's metadata before the chat, active content after it."""
        end, free = len(context.plan), first_mutable(context.plan)
        self.fold(context, {i for i in _as_the_host_sent_them(context) if i >= free})
        self._name_active(context, free)
        listed = _pool_lines(held)
        pool = sorted(context.sets.pool)
        lines = [object_line(ordinal, context.describe(ordinal)) for ordinal in pool]
        lines = [line for line in lines if listed.get(_first_word(line)) != line]
        contents = [active_content(context, ordinal) for ordinal in sorted(context.sets.active)]
        blocks = [block for own in contents if not _is_held(own, held) for block in own]
        blocks_at: dict[int, list[Block]] = {}
        if lines:
            # What sealed reasoning binds begins the prompt, so nothing new may go before it.
            blocks_at[end if free else 0] = [text_block("\n".join([pool_heading(), *lines]))]
        if blocks:
            heading = newly_active_heading() if held else active_heading()
            blocks_at[end] = [*blocks_at.get(end, ()), text_block(heading), *blocks]
        return blocks_at

    def _name_active(self, context: RenderContext, free: int) -> None:
        plan = context.plan
        for index in range(free, len(plan)):
            op = plan.ops[index]
            if op.form != "reference" or op.shown is None or plan.items[index].kind != "result":
                continue
            is_active = op.shown.object in context.sets.active
            other = (
                referring_to_active(context, index, op.shown)
                if is_active
                else referring(context, index)
            )
            if other != op:
                plan.write(index, other)


def active_content(context: RenderContext, ordinal: int) -> list[Block]:
    """What `Pools` shows of an active object: a short file as it is now, anything else as results
    showed it."""
    text = context.content(ordinal)
    if context.describe(ordinal).get("state") == "deleted":
        return [text_block(no_content(ordinal, "it was deleted"))]
    if text is not None and len(text) <= WHOLE_CHARS:
        return [text_block(f"{handle(ordinal)}\n{text}" if text else empty(ordinal))]
    blocks = [block for item in _shown(context, ordinal) for block in _blocks(item, ordinal)]
    return [block for n, block in enumerate(blocks) if block not in blocks[:n]]


def _pool_lines(held: Sequence[Block]) -> dict[str, str]:
    texts = (str(block.get("text") or "").split("\n") for block in held)
    pools = (lines for heading, *lines in texts if heading == pool_heading())
    return {_first_word(line): line for lines in pools for line in lines}


def _is_held(content: list[Block], held: Sequence[Block]) -> bool:
    if any(block not in held for block in content):
        return False
    texts = [block for block in content if "text" in block]
    same = [b for b in held if texts and _starts(b) == _starts(texts[-1])]
    return not same or same[-1] == texts[-1]


def _starts(block: Block) -> str:
    return _first_word(str(block.get("text") or ""))


def _first_word(text: str) -> str:
    return text.split(maxsplit=1)[0] if text.strip() else ""


def _as_the_host_sent_them(context: RenderContext) -> set[int]:
    items, ops = context.plan.items, context.plan.ops
    hosts = [i for i, op in enumerate(ops) if op.form == "host" and op.subject is not None]
    return {index for index in hosts if items[index].kind == "result"}


def _shown(context: RenderContext, ordinal: int) -> list[Item]:
    plan = context.plan
    ops, items = enumerate(plan.ops), plan.items
    every = [i for i, op in ops if op.subject == ordinal and items[i].kind == "result"]
    live = [index for index in every if index in context.branch.kept]
    return [plan.items[index] for index in live or every[-1:]]


def _blocks(item: Item, ordinal: int) -> list[Block]:
    if is_garbled(item):
        return [text_block(not_text(handle(ordinal), len(item.text)))]
    text = [text_block(f"{handle(ordinal)}\n{item.text}")] if item.text else []
    images = [block for block in item.blocks if block.get("type") == "image"]
    # Their keys in order: as they come back from the record, where they have to go out as they did.
    return [*text, *(dict(sorted(image.items())) for image in images)]


LAYOUTS: dict[str, type[Layout]] = {Anchored.name: Anchored, Pools.name: Pools}


def make_layout(name: str) -> Layout:
    """Raises `ConfigError` for an unknown name."""
    if name not in LAYOUTS:
        raise ConfigError(f"No layout is called {name!r}. Known: {', '.join(sorted(LAYOUTS))}.")
    return LAYOUTS[name]()

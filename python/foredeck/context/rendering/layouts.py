"""Where content goes in the prompt: two layouts behind one interface.

A layout turns facts about results into operations, and decides what changes at a rebase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from foredeck.context.digests import digest
from foredeck.context.messages.items import Block, Item, text_block
from foredeck.context.plan.ops import Op, Shown
from foredeck.context.plan.plan import Plan
from foredeck.context.rebase import first_mutable
from foredeck.context.rendering.context import RenderContext
from foredeck.context.rendering.forms import (
    HANDLE_FROM_CHARS,
    folded,
    full,
    is_garbled,
    is_only_receipt,
    referring,
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
"""Tools whose result is a file's text as it is."""


class Layout(Protocol):
    """Decides the bytes."""

    name: str
    keeps_bytes: bool
    """Whether sent bytes stay until a rebase; a stateless layout renders everything each time."""

    def place(self, context: RenderContext, index: int, shown: Shown | None) -> None:
        """Decide how a result goes out that is seen for the first time. `shown`: the object whose
        content it carries."""

    def fold(self, context: RenderContext, indexes: set[int]) -> None:
        """Rewrite the prompt without the content of these messages."""

    def inserts(self, context: RenderContext, held: Sequence[Block] = ()) -> dict[int, list[Block]]:
        """What goes between messages: index to a list of content blocks. `held`: blocks of
        earlier calls that stay where they are, since sealed reasoning is bound to them."""


class Anchored:
    """Every message is rendered once, and stays where and as it is. A result carries its content in
    its own message; when that goes, at a rebase, a line that refers to it takes its place."""

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
        """A read of lines that a visible read of the same file shows at the same place."""
        base = _visible_read(context, item, placed)
        if base is None or not _holds_lines(context.plan, base, item):
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
        if _range(_read_by(plan, base)) != _range(item.arguments):
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


def _holds_lines(plan: Plan, base: int, item: Item) -> bool:
    """Whether message `base` shows the lines of a read under the same numbers."""
    held = parse_read_range(_read_by(plan, base), shown_text(plan, base))
    asked = parse_read_range(item.arguments, item.text)
    if held is None or asked is None or not asked.text.strip("\n"):
        return False
    if asked.last == asked.total and held.last != asked.last:
        # The file ends here now: where the copy goes on, "unchanged" would say that it does not.
        return False
    # Not anywhere in the copy: lines that have moved are no longer where the model would look.
    start, lines = asked.first - held.first, asked.text.split("\n")
    return start >= 0 and held.text.split("\n")[start : start + len(lines)] == lines


def _read_by(plan: Plan, index: int) -> Mapping[str, Any]:
    """The arguments of a read that shows what a message shows: where the copy was brought up to
    date, it is of the whole file, whatever had been read."""
    item = plan.items[index]
    return item.arguments if shown_text(plan, index) == item.text else {}


def _range(arguments: Mapping[str, Any]) -> tuple[Any, Any]:
    return arguments.get("offset"), arguments.get("limit")


WHOLE_CHARS = 50_000
"""A longer file is not shown whole, only as far as it was read."""


class Pools:
    """Metadata of every object in the pool comes first, then the chat, in which every result is a
    reference line, then the content of the active objects. It is rendered again at every call, but
    for what sealed reasoning of the turn under way is bound to: until that turn ends, what is new
    or has changed goes to the end."""

    name = "pools"
    keeps_bytes = False

    def place(self, context: RenderContext, index: int, shown: Shown | None) -> None:
        """A reference line; the content is at the end while the object is active.

        An old version stays where it was asked for: what is active is the newest.
        """
        plan, item = context.plan, context.plan.items[index]
        if shown is None:
            plan.write(index, full(item, None))
        elif shown.version is not None and shown.version < context.newest(shown.object):
            plan.write(index, full(item, shown, old_version(shown.object, shown.version)))
        else:
            plan.write(index, referring(context, index, shown=shown))

    def fold(self, context: RenderContext, indexes: set[int]) -> None:
        """Results are references already; what is no longer active is simply not listed."""
        for index in sorted(indexes):
            op = context.plan.ops[index]
            if op.form in ("host", "full") and op.subject is not None:
                context.plan.write(index, referring(context, index))

    def inserts(self, context: RenderContext, held: Sequence[Block] = ()) -> dict[int, list[Block]]:
        """The metadata pool before the chat, the active content after it."""
        end, free = len(context.plan), first_mutable(context.plan)
        self.fold(context, {i for i in _as_the_host_sent_them(context) if i >= free})
        listed = _pool_lines(held)
        pool = sorted(context.sets.pool)
        lines = [object_line(ordinal, context.describe(ordinal)) for ordinal in pool]
        lines = [line for line in lines if listed.get(_first_word(line)) != line]
        contents = [self._content(context, ordinal) for ordinal in sorted(context.sets.active)]
        blocks = [block for own in contents if not _is_held(own, held) for block in own]
        found: dict[int, list[Block]] = {}
        if lines:
            # What sealed reasoning binds begins the prompt, so nothing new may go before it.
            found[end if free else 0] = [text_block("\n".join([pool_heading(), *lines]))]
        if blocks:
            heading = newly_active_heading() if held else active_heading()
            found[end] = [*found.get(end, ()), text_block(heading), *blocks]
        return found

    def _content(self, context: RenderContext, ordinal: int) -> list[Block]:
        """A file as it is now; anything else, and a long file, as results have shown it."""
        text = context.content(ordinal)
        if context.describe(ordinal).get("state") == "deleted":
            return [text_block(no_content(ordinal, "it was deleted"))]
        if text is not None and len(text) <= WHOLE_CHARS:
            return [text_block(f"{handle(ordinal)}\n{text}" if text else empty(ordinal))]
        blocks = [block for item in _shown(context, ordinal) for block in _blocks(item, ordinal)]
        return [block for n, block in enumerate(blocks) if block not in blocks[:n]]


def _pool_lines(held: Sequence[Block]) -> dict[str, str]:
    """The newest metadata that is there already, by handle."""
    texts = (str(block.get("text") or "").split("\n") for block in held)
    pools = (lines for heading, *lines in texts if heading == pool_heading())
    return {_first_word(line): line for lines in pools for line in lines}


def _is_held(content: list[Block], held: Sequence[Block]) -> bool:
    """Whether an object's content is there already, and nothing newer of it after that."""
    if any(block not in held for block in content):
        return False
    texts = [block for block in content if "text" in block]
    same = [b for b in held if texts and _starts(b) == _starts(texts[-1])]
    return not same or same[-1] == texts[-1]


def _starts(block: Block) -> str:
    return _first_word(str(block.get("text") or ""))


def _first_word(text: str) -> str:
    """The handle, with which metadata and content begin."""
    return text.split(maxsplit=1)[0] if text.strip() else ""


def _as_the_host_sent_them(context: RenderContext) -> set[int]:
    """Results that went out without us: they take the form of the others."""
    items, ops = context.plan.items, context.plan.ops
    hosts = [i for i, op in enumerate(ops) if op.form == "host" and op.subject is not None]
    return {index for index in hosts if items[index].kind == "result"}


def _shown(context: RenderContext, ordinal: int) -> list[Item]:
    """The results that carry an object's content and are still wanted, else the newest one."""
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
    """The layout of that name. Raises `ConfigError` for a name that is not known."""
    if name not in LAYOUTS:
        raise ConfigError(f"No layout is called {name!r}. Known: {', '.join(sorted(LAYOUTS))}.")
    return LAYOUTS[name]()

"""Layout `pools`: objects in the pool, then the chat, then active content; stateless.

Metadata of every object in the pool comes first, then the chat, in which every result is a
reference line, then the content of the active objects. It is rendered again at every call, but for
what sealed reasoning of the turn under way is bound to: until that turn ends, what is new or has
changed goes to the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from foredeck.context.messages.items import Block, Item, text_block
from foredeck.context.plan.ops import Shown
from foredeck.context.rebase import first_mutable
from foredeck.context.rendering.context import RenderContext
from foredeck.context.rendering.layout import full, is_garbled, referring
from foredeck.context.wording import (
    active_heading,
    empty,
    handle,
    newly_active_heading,
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
        lines = [self._line(context, ordinal) for ordinal in sorted(context.sets.pool)]
        lines = [line for line in lines if listed.get(_first_word(line)) != line]
        contents = [self._content(context, ordinal) for ordinal in sorted(context.sets.active)]
        blocks = [block for own in contents if not _is_held(own, held) for block in own]
        found: dict[int, list[Block]] = {}
        if lines:
            found[end if free else 0] = [text_block("\n".join([pool_heading(), *lines]))]
        if blocks:
            heading = newly_active_heading() if held else active_heading()
            found[end] = [*found.get(end, ()), text_block(heading), *blocks]
        return found

    def _line(self, context: RenderContext, ordinal: int) -> str:
        return object_line(ordinal, context.describe(ordinal))

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

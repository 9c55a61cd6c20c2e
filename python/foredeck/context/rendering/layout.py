"""Where content stands in the prompt. Two layouts behind one interface.

A layout turns facts about results into parts, and decides what changes at a rebase. It is given
a `RenderContext`: the conversation and what it may look up. It never writes to the store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from foredeck.context.arguments import args_display
from foredeck.context.digests import DigestSize
from foredeck.context.messages.conversation import Conversation
from foredeck.context.messages.items import Block, Item, text_block
from foredeck.context.messages.parts import FOLDABLE_ARGUMENT_CHARS, Part, keep_all
from foredeck.context.state.branch import Branch
from foredeck.context.state.gauge import Gauge
from foredeck.context.state.sets import Sets
from foredeck.context.wording import (
    done,
    handle,
    no_longer_above,
    not_text,
    pasted,
    reference,
    unlabelled,
)
from foredeck.model.own_tools import CONTEXT_TOOLS
from foredeck.model.quoting import looks_like_ours
from foredeck.sources import parse_read_range
from foredeck.sources.toolpaths import WRITERS

HANDLE_FROM_CHARS = 200
"""A shorter result would gain nothing from being folded, so it needs no handle."""

RECEIPT_CHARS = 400
"""A writer's result that is longer has more to tell than that the file was written."""

GARBLED_SHARE = 5
"""One replacement character in this many, and nobody can read the rest either."""


@dataclass(frozen=True, slots=True)
class NewResult:
    """A new result and the object whose content it carries."""

    index: int
    subject: int | None
    version: int | None
    text_hash: str | None


@dataclass(slots=True)
class RenderContext:
    """What a layout works on."""

    branch: Branch
    content: Callable[[int], str | None]
    """A file's newest content, by handle; None for other objects and for what is not text."""
    describe: Callable[[int], Mapping[str, Any]]
    """The metadata of an object, by handle: fields of its head."""
    newest: Callable[[int], int]
    """The newest version of an object that the session knows, by handle."""
    cwd: str = ""
    min_saving_chars: int = 120
    label: Callable[[str], int | None] = lambda _call_id: None
    """The handle of a tool call, by the provider's id of it."""
    digests: DigestSize = field(default_factory=DigestSize)
    """How long the digest of a folded result may be."""
    gauge: Gauge = field(default_factory=Gauge)
    """Characters to tokens, for the model that will be called."""
    changed: set[int] = field(default_factory=set)
    """Messages whose part was set in this call."""
    attributed: set[int] = field(default_factory=set)
    """Messages that belong to another object since this call, with the bytes that they had."""
    fold_text: Callable[[Item, str], str] | None = None
    """What takes the place of a long text of a message; makes the object that has all of it."""
    file_at: Callable[[str], int | None] = lambda _path: None
    """The handle of a file, by its absolute path."""

    @property
    def conversation(self) -> Conversation:
        """The branch's messages with their parts."""
        return self.branch.conversation

    @property
    def sets(self) -> Sets:
        """The branch's pool, active and pinned set."""
        return self.branch.sets

    def render(self, index: int, part: Part) -> None:
        """Set a message's part and note that it is new."""
        self.conversation.render(index, part)
        self.changed.add(index)

    def takes_lines(self, index: int) -> bool:
        """Whether `attach` may be called for a message: what the user said, or a result."""
        kind = self.conversation.items[index].kind
        return kind in ("user", "result") and index not in self.branch.edits.drops

    def attach(self, index: int, line: str) -> None:
        """Put a line of ours on a message, as a block of its own.

        The message must be new in this call: what was sent is never touched. On a result the line
        stands first: what follows a line of ours may be anybody's text and pretend, what comes
        first cannot. The user's text stays first.
        """
        item, part = self.conversation.items[index], self.conversation.parts[index]
        own = part.blocks if part.blocks is not None else keep_all(item)
        block = text_block(line)
        blocks = [*own, block] if item.kind == "user" else [block, *own]
        self.render(index, replace(part, blocks=blocks))

    def attribute(self, index: int, subject: int, version: int) -> None:
        """Note that a message shows another object from now on; its bytes stay."""
        self.conversation.attribute(index, subject, version)
        self.attributed.add(index)


class Layout(Protocol):
    """Decides the bytes."""

    name: str
    keeps_bytes: bool
    """Whether sent bytes stay until a rebase; a stateless layout renders everything each time."""

    def place(self, context: RenderContext, placed: NewResult) -> None:
        """Render a result that is seen for the first time."""

    def fold(self, context: RenderContext, indexes: set[int]) -> None:
        """Rewrite the prompt without the content of these messages."""

    def inserts(
        self, context: RenderContext, standing: Sequence[Block] = ()
    ) -> dict[int, list[Block]]:
        """What stands between messages: index to a list of content blocks. `standing`: blocks of
        earlier calls that stay where they are, since sealed reasoning is bound to them."""


def full_part(item: Item, placed: NewResult, head: str | None = None) -> Part:
    """The content itself, under its handle where it is long enough to be folded later."""
    own = keep_all(item)
    if placed.subject is None:
        return Part("note" if item.tool in CONTEXT_TOOLS else "host")
    label = head or handle(placed.subject)
    if is_garbled(item):
        line = text_block(not_text(label, len(item.text)))
        return Part("full", [line], placed.subject, placed.version, None, placed.text_hash)
    long = item.chars >= HANDLE_FROM_CHARS
    needs_handle = head is not None or not own or long or looks_like_ours(item.text)
    blocks = [text_block(label), *own] if needs_handle else None
    return Part("full", blocks, placed.subject, placed.version, None, placed.text_hash)


def shown_text(conversation: Conversation, index: int) -> str:
    """The text of a result as it can be read: a copy that was brought up to date has its own."""
    part = conversation.parts[index]
    last = part.blocks[-1] if part.form == "full" and part.blocks else {}
    if len(part.blocks or ()) > 1 and "keep" not in last:
        return str(last.get("text") or "")
    return conversation.items[index].text


def is_garbled(item: Item) -> bool:
    """Whether a `read` shows what its host makes of bytes that are no text, at some length."""
    if item.tool != "read" or item.failed or item.has_image or item.chars < HANDLE_FROM_CHARS:
        return False
    return "\0" in item.text or item.text.count("\ufffd") * GARBLED_SHARE > len(item.text)


def shown_name(conversation: Conversation, index: int, ordinal: int, cwd: str) -> str:
    """What to call the content that a message shows, so that it can be found there."""
    if conversation.parts[index].blocks is not None:
        return handle(ordinal)
    item = conversation.items[index]
    if item.kind == "user":
        return pasted(ordinal)
    return unlabelled(ordinal, item.tool, args_display(item.arguments, cwd))


def folded_part(context: RenderContext, index: int, digest_text: str = "") -> Part:
    """What is left of a result when it folds: `reference_part`, and less of a receipt."""
    part = context.conversation.parts[index]
    if part.subject is None or not is_only_receipt(context.conversation, index):
        return reference_part(context, index, digest_text)
    line = text_block(done(part.subject))
    return Part("reference", [line], part.subject, part.version, None, part.text_hash)


def is_receipt(item: Item) -> bool:
    """Whether a result only says that a file was written, as the call above says already."""
    if item.tool not in WRITERS or item.failed or item.has_image:
        return False
    return len(item.text) <= RECEIPT_CHARS


def is_only_receipt(conversation: Conversation, index: int) -> bool:
    """Whether a message still shows no more than such a result, and not a copy of the file."""
    item = conversation.items[index]
    return is_receipt(item) and shown_text(conversation, index) is item.text


def reference_part(context: RenderContext, index: int, digest_text: str = "") -> Part:
    """The line that is left of a result when its content goes; `digest_text`: its digest."""
    item, part = context.conversation.items[index], context.conversation.parts[index]
    if part.subject is None:
        return part
    fields = {
        "tool": item.tool,
        "status": "fail" if item.failed else "ok",
        "args_display": ""
        if stays_in_call(item)
        else args_display(_distinctive_arguments(item), context.cwd),
    }
    images = sum(1 for block in item.blocks if block.get("type") == "image")
    text = shown_text(context.conversation, index)
    lines = _lines(item, text)
    line = reference(part.subject, fields, chars=len(text), lines=lines, images=images)
    block = text_block(f"{line}\n{digest_text}" if digest_text else line)
    return Part("reference", [block], part.subject, part.version, None, part.text_hash)


def stand_alone(context: RenderContext, folded: Collection[int]) -> None:
    """Render what refers to content of these messages, which is gone, so that it needs none: a
    difference in full, the rest as a line."""
    conversation = context.conversation
    for index, part in enumerate(conversation.parts):
        if part.base is None or part.base not in folded or index in folded:
            continue
        if part.form == "diff":
            placed = NewResult(index, part.subject, part.version, part.text_hash)
            context.render(index, full_part(conversation.items[index], placed))
        elif part.form == "same":
            context.render(index, reference_part(context, index))
        elif part.form == "note":
            subject = conversation.parts[part.base].subject
            if subject is not None:
                context.render(index, Part("note", [text_block(no_longer_above(subject))]))


def stays_in_call(item: Item) -> bool:
    """Whether the call right above shows a result's arguments, and will as long as the result is
    there: arguments this short never fold. Its reference line then need not repeat them."""
    return len(json.dumps(item.arguments, ensure_ascii=False)) <= FOLDABLE_ARGUMENT_CHARS


def _distinctive_arguments(item: Item) -> Mapping[str, Any]:
    """The arguments, but for what `lines` says of a read."""
    if item.tool != "read":
        return item.arguments
    return {k: v for k, v in item.arguments.items() if k not in ("offset", "limit")}


def _lines(item: Item, text: str) -> str:
    """Which lines of a file a read shows, or how many there are of any other text."""
    if item.tool == "read" and not item.failed:
        shown = parse_read_range(item.arguments, text)
        return f"{shown.first}-{shown.last}" if shown and shown.last > shown.first else ""
    count = text.rstrip("\n").count("\n") + 1
    return str(count) if count > 1 else ""

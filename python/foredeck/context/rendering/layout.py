"""Where content goes in the prompt. Two layouts behind one interface.

A layout turns facts about results into operations, and decides what changes at a rebase. It is
given a `RenderContext`: the plan and what it may look up. It never writes to the store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from foredeck.context.arguments import args_display
from foredeck.context.digests import DigestSize
from foredeck.context.messages.items import Block, Item, text_block
from foredeck.context.plan.ops import (
    FOLDABLE_ARGUMENT_CHARS,
    Keep,
    Omit,
    Op,
    Rewrite,
    Shown,
    keep_all,
)
from foredeck.context.plan.plan import Plan
from foredeck.context.plan.retention import Retention
from foredeck.context.rendering.view import PromptNames
from foredeck.context.state.chat import Branch, Chat
from foredeck.context.state.descriptions import nicknames
from foredeck.context.state.gauge import Gauge
from foredeck.context.state.objects import Objects
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
from foredeck.model.documents import FileDocument
from foredeck.model.own_tools import CONTEXT_TOOLS
from foredeck.model.quoting import looks_like_ours
from foredeck.sources.tool_calls import WRITERS, parse_read_range

HANDLE_FROM_CHARS = 200
"""A shorter result would gain nothing from being folded, so it needs no handle."""

RECEIPT_CHARS = 400
"""A writer's result that is longer has more to tell than that the file was written."""

GARBLED_SHARE = 5
"""One replacement character in this many, and the rest cannot be read either."""


@dataclass(slots=True)
class RenderContext:
    """What rendering works on at one call: the plan, what it may look up, and how much may stay."""

    objects: Objects
    chat: Chat
    gauge: Gauge = field(default_factory=Gauge)
    """Characters to tokens, for the model that will be called."""
    names: PromptNames = field(default_factory=PromptNames)
    """The identifiers that can be read in the prompt."""
    min_saving_chars: int = 120
    digests: DigestSize = field(default_factory=DigestSize)
    """How long the digest of a folded result may be."""
    fold_text: Callable[[Item, str], str] | None = None
    """What takes the place of a long text of a message; makes the object that has all of it."""
    branch: Branch = field(init=False)
    _began: tuple[int, int] = field(init=False)
    """How much was written into the plan and attributed before."""
    _nicknames: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        self.branch = self.chat.branch
        self._began = len(self.plan.written), len(self.plan.attributed)

    @property
    def plan(self) -> Plan:
        """What goes out of the branch's messages."""
        return self.branch.plan

    @property
    def retention(self) -> Retention:
        """Which contents of the plan are kept."""
        return self.branch.retention

    @property
    def sets(self) -> Sets:
        """The branch's pool, active and pinned set."""
        return self.branch.sets

    @property
    def cwd(self) -> str:
        """The session's folder."""
        return self.objects.info.cwd

    def content(self, ordinal: int) -> str | None:
        """A file's content as the session has seen it last, by handle; None for any other object,
        and for what is not text."""
        objects, entry = self.objects, self.objects.index.entries[ordinal]
        if entry.type != "file":
            return None
        pending = objects.workspace.pending.get(entry.object)
        document = pending or objects.store.get(entry.object, FileDocument)
        return None if document is None else document.content

    def newest(self, ordinal: int) -> int:
        """The newest version of an object that the session knows, by handle."""
        return self.objects.index.entries[ordinal].newest.version

    def label(self, name: str) -> int | None:
        """The handle of a tool call, by the provider's id of it, or of a file, by its absolute
        path."""
        return self.objects.index.by_label.get(name)

    def describe(self, ordinal: int) -> Mapping[str, Any]:
        """What the line of an object's metadata is made of, by handle."""
        if self._nicknames is None:
            self._nicknames = nicknames(self.objects.store)
        return described(self.objects, ordinal, self._nicknames)

    @property
    def changed(self) -> set[int]:
        """The messages whose operation was decided anew in this call."""
        return set(self.plan.written[self._began[0] :])

    @property
    def attributed(self) -> set[int]:
        """The messages that show another object since this call, with the bytes that they had."""
        return set(self.plan.attributed[self._began[1] :])

    def takes_lines(self, index: int) -> bool:
        """Whether `attach` may be called for a message: what the user said, or a result."""
        kind = self.plan.items[index].kind
        return kind in ("user", "result") and not self.plan.is_omitted(index)

    def attach(self, index: int, line: str) -> None:
        """Put a line of ours on a message, as a block of its own.

        The message must be new in this call: what was sent is never touched. On a result the line
        comes first: what follows a line of ours may be anybody's text and pretend, what comes
        first cannot. The user's text stays first.
        """
        item, op = self.plan.items[index], self.plan.ops[index]
        assert not isinstance(op, Omit)  # or nobody would read the line
        own = op.blocks if op.blocks is not None else keep_all(item)
        block = text_block(line)
        blocks = [*own, block] if item.kind == "user" else [block, *own]
        self.plan.write(index, Rewrite(op.form, blocks, op.shown, op.base, op.folded))


def described(
    objects: Objects, ordinal: int, names: Mapping[str, str] | None = None
) -> Mapping[str, Any]:
    """The fields of an object's newest version, with its type, its nickname, and what the model
    calls a file: what its line is made of (`wording.object_line`). `names`: all nicknames."""
    entry = objects.index.entries[ordinal]
    names = nicknames(objects.store) if names is None else names
    head = objects.workspace.head(entry.object)
    if head is None:
        return {}
    path = objects.name_of(entry) if entry.type == "file" else None
    named = {"path": path, "nickname": names.get(entry.object)}
    return {**head.fields, "type": head.type, **named}


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

    def inserts(
        self, context: RenderContext, standing: Sequence[Block] = ()
    ) -> dict[int, list[Block]]:
        """What goes between messages: index to a list of content blocks. `standing`: blocks of
        earlier calls that stay where they are, since sealed reasoning is bound to them."""


def full(item: Item, shown: Shown | None, head: str | None = None) -> Op:
    """The content itself, under its handle where it is long enough to be folded later."""
    own = keep_all(item)
    if shown is None:
        return Keep(form="note" if item.tool in CONTEXT_TOOLS else "host")
    label = head or handle(shown.object)
    if is_garbled(item):
        return Rewrite("full", [text_block(not_text(label, len(item.text)))], shown)
    long = item.chars >= HANDLE_FROM_CHARS
    needs_handle = head is not None or not own or long or looks_like_ours(item.text)
    return (
        Rewrite("full", [text_block(label), *own], shown) if needs_handle else Keep(shown, "full")
    )


def shown_text(plan: Plan, index: int) -> str:
    """The text of a result as it can be read: a copy that was brought up to date has its own."""
    op = plan.ops[index]
    last = op.blocks[-1] if op.form == "full" and op.blocks else {}
    if len(op.blocks or ()) > 1 and "keep" not in last:
        return str(last.get("text") or "")
    return plan.items[index].text


def is_garbled(item: Item) -> bool:
    """Whether a `read` shows what its host makes of bytes that are no text, at some length."""
    if item.tool != "read" or item.failed or item.has_image or item.chars < HANDLE_FROM_CHARS:
        return False
    return "\0" in item.text or item.text.count("\ufffd") * GARBLED_SHARE > len(item.text)


def shown_name(plan: Plan, index: int, ordinal: int, cwd: str) -> str:
    """What to call the content that a message shows, so that it can be found there."""
    if plan.ops[index].blocks is not None:
        return handle(ordinal)
    item = plan.items[index]
    if item.kind == "user":
        return pasted(ordinal)
    return unlabelled(ordinal, item.tool, args_display(item.arguments, cwd))


def folded(context: RenderContext, index: int, digest_text: str = "") -> Op:
    """What is left of a result when it folds: `referring`, and less of a receipt."""
    shown = context.plan.ops[index].shown
    if shown is None or not is_only_receipt(context.plan, index):
        return referring(context, index, digest_text)
    return Rewrite("reference", [text_block(done(shown.object))], shown)


def is_receipt(item: Item) -> bool:
    """Whether a result only says that a file was written, as the call above says already."""
    if item.tool not in WRITERS or item.failed or item.has_image:
        return False
    return len(item.text) <= RECEIPT_CHARS


def is_only_receipt(plan: Plan, index: int) -> bool:
    """Whether a message still shows no more than such a result, and not a copy of the file."""
    item = plan.items[index]
    return is_receipt(item) and shown_text(plan, index) is item.text


def referring(
    context: RenderContext, index: int, digest_text: str = "", shown: Shown | None = None
) -> Op:
    """The line that is left of a result when its content goes; `digest_text`: its digest. `shown`:
    the object, where the plan does not name it yet."""
    item, op = context.plan.items[index], context.plan.ops[index]
    shown = shown or op.shown
    if shown is None:
        return op
    fields = {
        "tool": item.tool,
        "status": "fail" if item.failed else "ok",
        "args_display": ""
        if stays_in_call(item)
        else args_display(_distinctive_arguments(item), context.cwd),
    }
    images = sum(1 for block in item.blocks if block.get("type") == "image")
    text = shown_text(context.plan, index)
    lines = _lines(item, text)
    line = reference(shown.object, fields, chars=len(text), lines=lines, images=images)
    block = text_block(f"{line}\n{digest_text}" if digest_text else line)
    return Rewrite("reference", [block], shown)


def stand_alone(context: RenderContext, gone: Collection[int]) -> None:
    """Render what refers to content of these messages, which is gone, so that it needs none: a
    difference in full, the rest as a line."""
    plan = context.plan
    if not any(index in plan.referred_at for index in gone):
        return
    for index, op in enumerate(plan.ops):
        if op.base is None or op.base not in gone or index in gone:
            continue
        if op.form == "diff":
            plan.write(index, full(plan.items[index], op.shown))
        elif op.form == "same":
            plan.write(index, referring(context, index))
        elif op.form == "note":
            subject = plan.ops[op.base].subject
            if subject is not None:
                plan.write(index, Rewrite("note", [text_block(no_longer_above(subject))]))


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

"""How a result goes out: in full, by reference, or as a line, and what that works on in one call.

Never writes to the store.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from foredeck.context.digests import DigestSize
from foredeck.context.messages.items import Block, Item, args_display, text_block
from foredeck.context.plan.ops import FOLDABLE_ARGUMENT_CHARS, Op, Shown, keep_all
from foredeck.context.plan.plan import Plan
from foredeck.context.state.chat import Branch, Chat
from foredeck.context.state.descriptions import nicknames
from foredeck.context.state.gauge import Gauge
from foredeck.context.state.index import Sets
from foredeck.context.state.objects import Objects
from foredeck.context.wording import (
    active_reference,
    described_anew,
    done,
    handle,
    no_longer_above,
    not_text,
    pasted,
    reference,
    said_of,
    unlabelled,
)
from foredeck.model.documents import FileDocument
from foredeck.model.kinds import kind_of
from foredeck.model.messages import strings_in
from foredeck.model.names import identifiers
from foredeck.model.own_tools import CONTEXT_TOOLS
from foredeck.model.quoting import looks_like_ours
from foredeck.sources.tool_calls import WRITERS, parse_read_range


@dataclass(slots=True, eq=False)
class PromptNames:
    """Identifiers in a plan's messages, searched once per message."""

    _plan: Plan | None = None
    _own: dict[int, frozenset[str]] = field(default_factory=dict)
    """By message, in the host's form."""
    _written: dict[int, tuple[list[Block], frozenset[str]]] = field(default_factory=dict)

    def in_view(self, plan: Plan, without: Collection[int]) -> set[str]:
        """Identifiers in all that goes out but the messages `without`."""
        self._follow(plan)
        names: set[str] = set()
        for index in range(len(plan)):
            if index in without:
                continue
            blocks = plan.recipe(index)
            if blocks is None or any("keep" in block for block in blocks):
                names |= self.of(plan, index)
            else:
                self._own.pop(index, None)  # most messages of a long session are folded for good
            if blocks:
                names |= self._of_written(index, blocks)
        return names

    def of(self, plan: Plan, index: int) -> frozenset[str]:
        self._follow(plan)
        names = self._own.get(index)
        if names is None:
            item = plan.items[index]
            names = identifiers(item.text) if item.kind == "result" else _names(item.blocks)
            self._own[index] = names
        return names

    def _of_written(self, index: int, blocks: list[Block]) -> frozenset[str]:
        # The list of an operation never changes, so the very same list has the same names.
        cached, names = self._written.get(index, (None, frozenset()))
        if cached is not blocks:
            names = _names(block for block in blocks if "keep" not in block)
            self._written[index] = blocks, names
        return names

    def _follow(self, plan: Plan) -> None:
        if self._plan is not plan:
            self._plan, self._own, self._written = plan, {}, {}


def _names(blocks: Iterable[Block]) -> frozenset[str]:
    texts = (text for block in blocks for text in _texts(block))
    return frozenset[str]().union(*map(identifiers, texts))


def _texts(block: Block) -> Iterable[str]:
    kind = block.get("type")
    if kind == "toolCall":
        return strings_in(block.get("arguments"))
    return strings_in(block.get(kind)) if kind in ("text", "thinking") else ()


@dataclass(slots=True)
class RenderContext:
    objects: Objects
    chat: Chat
    gauge: Gauge
    names: PromptNames
    """The identifiers readable in the prompt."""
    min_saving_chars: int
    digests: DigestSize
    """Length of digests."""
    summary_chars: int
    """Longest summary of a message whose middle folds."""
    branch: Branch = field(init=False)
    plan: Plan = field(init=False)
    sets: Sets = field(init=False)
    _began: tuple[int, int] = field(init=False)
    _nicknames: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        self.branch = self.chat.branch
        self.plan, self.sets = self.branch.plan, self.branch.sets
        self._began = len(self.plan.written), len(self.plan.attributed)

    @property
    def cwd(self) -> str:
        return self.objects.info.cwd

    def content(self, ordinal: int) -> str | None:
        """A file's last stored content; None for other objects and binary files.

        May be newer than `newest`: another session's, or of a result that no list has.
        """
        objects, entry = self.objects, self.objects.index.entries[ordinal]
        if entry.type != "file":
            return None
        pending = objects.workspace.pending.get(entry.object)
        document = pending or objects.store.get(entry.object, FileDocument)
        return None if document is None else document.content

    def newest(self, ordinal: int) -> int:
        """The newest version that the session knows."""
        return self.objects.index.entries[ordinal].newest.version

    def label(self, name: str) -> int | None:
        """The handle of a call, by provider id, or of a file, by absolute path."""
        return self.objects.index.by_label.get(name)

    def describe(self, ordinal: int) -> Mapping[str, Any]:
        if self._nicknames is None:
            self._nicknames = nicknames(self.objects.store)
        return described(self.objects, ordinal, self._nicknames)

    def said_of(self, ordinal: int) -> str:
        """Somebody's description of the object: nickname and own view."""
        fields = self.describe(ordinal)
        return said_of(fields, kind_of(str(fields.get("type"))).metadata_fields)

    @property
    def changed(self) -> set[int]:
        return set(self.plan.written[self._began[0] :])

    @property
    def attributed(self) -> set[int]:
        """Messages given to another object in this call."""
        return set(self.plan.attributed[self._began[1] :])

    def takes_lines(self, index: int) -> bool:
        """Whether `attach` accepts the message: a user's or a result."""
        kind = self.plan.items[index].kind
        return kind in ("user", "result") and not self.plan.is_omitted(index)

    def attach(self, index: int, line: str) -> None:
        """Adds a line, as its own block, to a message new in this call.

        First on a result, since text after it could pretend to be foredeck's.
        """
        item, op = self.plan.items[index], self.plan.ops[index]
        assert op.form != "omitted"  # or the line would not go out
        own = op.blocks if op.blocks is not None else keep_all(item)
        block = text_block(line)
        blocks = [*own, block] if item.kind == "user" else [block, *own]
        self.plan.write(index, Op(op.form, blocks, op.shown, op.base, op.folded))


def described(
    objects: Objects, ordinal: int, names: Mapping[str, str] | None = None
) -> Mapping[str, Any]:
    """The input of `wording.object_line`; `names` are all nicknames."""
    entry = objects.index.entries[ordinal]
    names = nicknames(objects.store) if names is None else names
    head = objects.workspace.head(entry.object)
    if head is None:
        return {}
    path = objects.name_of(entry) if entry.type == "file" else None
    names_of_object = {"path": path, "nickname": names.get(entry.object)}
    return {**head.fields, "type": head.type, **names_of_object}


HANDLE_FROM_CHARS = 200
"""Shorter results get no handle, as folding gains nothing."""

RECEIPT_CHARS = 400
"""A longer result of a writer says more than that it wrote."""

GARBLED_SHARE = 5
"""A text with one replacement character in so many is unreadable."""


def full(item: Item, shown: Shown | None, head: str | None = None) -> Op:
    """The content, under its handle if it is long enough to fold later."""
    own = keep_all(item)
    if shown is None:
        return Op("note" if item.tool in CONTEXT_TOOLS else "host")
    label = head or handle(shown.object)
    if is_garbled(item):
        return Op("full", [text_block(not_text(label, len(item.text)))], shown)
    long = item.chars >= HANDLE_FROM_CHARS
    # A short text of others that looks like a line of ours goes below a handle, like any content.
    needs_handle = head is not None or not own or long or looks_like_ours(item.text)
    return Op("full", [text_block(label), *own] if needs_handle else None, shown)


def shown_text(plan: Plan, index: int) -> str:
    """A result's text as the model reads it."""
    op = plan.ops[index]
    last = op.blocks[-1] if op.form == "full" and op.blocks else {}
    if len(op.blocks or ()) > 1 and "keep" not in last:
        return str(last.get("text") or "")
    return plan.items[index].text


def is_garbled(item: Item) -> bool:
    """Whether a `read` shows a binary file as text."""
    if item.tool != "read" or item.failed or item.has_image or item.chars < HANDLE_FROM_CHARS:
        return False
    return "\0" in item.text or item.text.count("\ufffd") * GARBLED_SHARE > len(item.text)


def shown_name(plan: Plan, index: int, ordinal: int, cwd: str) -> str:
    """A name by which the model finds the message's content."""
    if plan.ops[index].blocks is not None:
        return handle(ordinal)
    item = plan.items[index]
    if item.kind == "user":
        return pasted(ordinal)
    return unlabelled(ordinal, item.tool, args_display(item.arguments, cwd))


def folded(context: RenderContext, index: int, digest_text: str = "") -> Op:
    """A result's line with its digest, or less for a receipt."""
    content = context.plan.ops[index].shown
    if content is None or not is_only_receipt(context.plan, index):
        return referring(context, index, digest_text)
    return Op("reference", [text_block(done(content.object))], content)


def describe_folded(context: RenderContext, indexes: Iterable[int]) -> bool:
    """Updates the descriptions in these lines; returns whether any changed."""
    before = len(context.plan.written)
    plan = context.plan
    folded_objects = {
        n: op.subject
        for n in indexes
        if (op := plan.ops[n]).form == "reference"
        and op.subject is not None
        and plan.items[n].kind == "result"
    }
    entries = context.objects.index.entries
    with context.objects.workspace.looked_up(entries[n].object for n in folded_objects.values()):
        for index, ordinal in folded_objects.items():
            op = plan.ops[index]
            line, separator, rest = str((op.blocks or [{}])[0].get("text")).partition("\n")
            anew = described_anew(line, context.said_of(ordinal))
            if anew != line:
                plan.write(index, Op("reference", [text_block(anew + separator + rest)], op.shown))
    return len(plan.written) > before


def is_only_receipt(plan: Plan, index: int) -> bool:
    """Whether a result only says that a file was written, and shows no copy of it."""
    item = plan.items[index]
    if item.tool not in WRITERS or item.failed or item.has_image:
        return False
    return len(item.text) <= RECEIPT_CHARS and shown_text(plan, index) is item.text


def referring(
    context: RenderContext, index: int, digest_text: str = "", shown: Shown | None = None
) -> Op:
    """A result's line, with its digest; `shown`: the object, if the plan does not name it yet."""
    item, op = context.plan.items[index], context.plan.ops[index]
    shown = shown or op.shown
    if shown is None:
        return op
    # The call right above shows arguments this short as long as the result is there: they never
    # fold. So the line need not repeat them, nor what it says of a read's lines.
    in_call = len(json.dumps(item.arguments, ensure_ascii=False)) <= FOLDABLE_ARGUMENT_CHARS
    dropped = ("offset", "limit") if item.tool == "read" else ()
    arguments = {k: v for k, v in item.arguments.items() if k not in dropped}
    fields = {
        "tool": item.tool,
        "status": "fail" if item.failed else "ok",
        "args_display": "" if in_call else args_display(arguments, context.cwd),
    }
    images = sum(1 for block in item.blocks if block.get("type") == "image")
    text = shown_text(context.plan, index)
    lines = ""
    if item.tool != "read" or item.failed:
        count = text.rstrip("\n").count("\n") + 1
        lines = str(count) if count > 1 else ""
    elif (range := parse_read_range(item.arguments, text)) and range.last > range.first:
        lines = f"{range.first}-{range.last}"
    line = reference(shown.object, fields, chars=len(text), lines=lines, images=images)
    block = text_block(f"{line}\n{digest_text}" if digest_text else line)
    return Op("reference", [block], shown)


def referring_to_active(context: RenderContext, index: int, shown: Shown) -> Op:
    """The line of a result whose content is shown elsewhere."""
    item = context.plan.items[index]
    fields = {"tool": item.tool, "status": "fail" if item.failed else "ok"}
    return Op("reference", [text_block(active_reference(shown.object, fields))], shown)


def render_dependents(context: RenderContext, gone: Collection[int], start: int = 0) -> None:
    """Renders what refers to lost content of `gone` without it: differences and results in flight
    in full, others as a line."""
    plan = context.plan
    if not any(index in plan.referred_at for index in gone):
        return
    flight, gone = plan.last_assistant(), set(gone)
    for index in range(start, len(plan)):
        op = plan.ops[index]
        if op.base is None or op.base not in gone or index in gone:
            continue
        if op.form == "note":
            subject = plan.ops[op.base].subject
            if subject is not None:
                plan.write(index, Op("note", [text_block(no_longer_above(subject))]))
        elif op.form == "diff" or index > flight:
            # The model has not seen yet what is in flight: a line would be all that it ever sees.
            plan.write(index, full(plan.items[index], op.shown))
        else:
            plan.write(index, referring(context, index))


MIN_SAVING_CHARS = 120
"""Less than about 30 tokens is not worth a word."""

MAX_DIFF_LINES = 4000
"""Comparing longer texts could cost more than it saves."""


def contains_lines(text: str, lines: str) -> bool:
    """Whether `lines` occur in `text` as whole lines in a row."""
    needle = lines.strip("\n")
    if not needle:
        return False
    position = text.find(needle)
    while position != -1:
        end = position + len(needle)
        starts_line = position == 0 or text[position - 1] == "\n"
        if starts_line and (end == len(text) or text[end] == "\n"):
            return True
        position = text.find(needle, position + 1)
    return False


def short_difference(old: str, new: str) -> str | None:
    """A unified diff with one line of context, if less than half as long as `new`, and half of
    `new` is old."""
    old_lines, new_lines = old.split("\n"), new.split("\n")
    if max(len(old_lines), len(new_lines)) > MAX_DIFF_LINES or not new_lines:
        return None
    shared = sum((Counter(old_lines) & Counter(new_lines)).values())
    if shared * 2 < len(new_lines):
        return None
    hunks = list(difflib.unified_diff(old_lines, new_lines, n=1, lineterm=""))[2:]
    diff = "\n".join(hunks)
    if not hunks or (len(diff) + MIN_SAVING_CHARS) * 2 >= len(new):
        return None
    return diff


def shown_lines(item: Item, text: str) -> str:
    """The file's lines in a read, without the tool's remarks."""
    range = parse_read_range(item.arguments, text)
    return "" if range is None else range.text

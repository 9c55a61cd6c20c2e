"""How a result goes out: in full under its handle, by reference to what is in view, or as the line
that is left of it. It is given a `RenderContext`, and never writes to the store.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Collection

from foredeck.context.arguments import args_display
from foredeck.context.messages.items import Item, text_block
from foredeck.context.plan.ops import FOLDABLE_ARGUMENT_CHARS, Op, Shown, keep_all
from foredeck.context.plan.plan import Plan
from foredeck.context.rendering.context import RenderContext
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
from foredeck.sources.tool_calls import WRITERS, parse_read_range

HANDLE_FROM_CHARS = 200
"""A shorter result would gain nothing from being folded, so it needs no handle."""

RECEIPT_CHARS = 400
"""A writer's result that is longer has more to tell than that the file was written."""

GARBLED_SHARE = 5
"""One replacement character in this many, and the rest cannot be read either."""


def full(item: Item, shown: Shown | None, head: str | None = None) -> Op:
    """The content itself, under its handle where it is long enough to be folded later."""
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
    return Op("reference", [text_block(done(shown.object))], shown)


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
    # The call right above shows arguments this short as long as the result is there: they never
    # fold. So the line need not repeat them, nor what it says of a read's lines.
    in_call = len(json.dumps(item.arguments, ensure_ascii=False)) <= FOLDABLE_ARGUMENT_CHARS
    said = ("offset", "limit") if item.tool == "read" else ()
    arguments = {k: v for k, v in item.arguments.items() if k not in said}
    fields = {
        "tool": item.tool,
        "status": "fail" if item.failed else "ok",
        "args_display": "" if in_call else args_display(arguments, context.cwd),
    }
    images = sum(1 for block in item.blocks if block.get("type") == "image")
    text = shown_text(context.plan, index)
    lines = _lines(item, text)
    line = reference(shown.object, fields, chars=len(text), lines=lines, images=images)
    block = text_block(f"{line}\n{digest_text}" if digest_text else line)
    return Op("reference", [block], shown)


def render_dependents(context: RenderContext, gone: Collection[int], start: int = 0) -> None:
    """Render what refers to content of these messages, which is gone, so that it needs none: a
    difference and a result in flight in full, the rest as a line. Only messages from `start` on."""
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


def _lines(item: Item, text: str) -> str:
    """Which lines of a file a read shows, or how many there are of any other text."""
    if item.tool == "read" and not item.failed:
        shown = parse_read_range(item.arguments, text)
        return f"{shown.first}-{shown.last}" if shown and shown.last > shown.first else ""
    count = text.rstrip("\n").count("\n") + 1
    return str(count) if count > 1 else ""


MIN_SAVING_CHARS = 120
"""About 30 tokens: less is not worth a word."""

MAX_DIFF_LINES = 4000
"""Comparing longer texts line by line could take longer than it saves."""


def contains_lines(text: str, lines: str) -> bool:
    """Whether `lines` are in `text` as whole lines, one after the other."""
    wanted = lines.strip("\n")
    if not wanted:
        return False
    position = text.find(wanted)
    while position != -1:
        end = position + len(wanted)
        starts_line = position == 0 or text[position - 1] == "\n"
        if starts_line and (end == len(text) or text[end] == "\n"):
            return True
        position = text.find(wanted, position + 1)
    return False


def short_difference(old: str, new: str) -> str | None:
    """A unified diff from `old` to `new` with one line of context, if it pays; else None.

    It pays where at least half of the new lines are in the old text too, and the diff with
    its head is less than half as long as the new text.
    """
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
    """The lines of the file that a read shows as `text`, without what the tool says of them."""
    shown = parse_read_range(item.arguments, text)
    return "" if shown is None else shown.text

"""Commands about the chat and its objects: views, costs, and what is asked of one object."""

from __future__ import annotations

from collections.abc import Iterator

from foredeck.accounting.figure import figure_lines
from foredeck.accounting.trace import trace
from foredeck.accounting.trace_spans import text_of
from foredeck.context.calls.call import SUMMARY_CHARS
from foredeck.context.compactions import last_compaction, preview
from foredeck.context.plan.ops import REASONING
from foredeck.context.plan.plan import Plan
from foredeck.context.tools.listing import (
    FOLDED,
    NOT_KNOWN,
    PINNED,
    Row,
    before_the_chat,
    change_state,
    content_for_user,
    counts,
    filling,
    listed_objects,
    name_object,
)
from foredeck.context.tools.memory_search import MemorySearch
from foredeck.context.tools.reasons import why
from foredeck.engine.opened import OpenedSession
from foredeck.errors import ToolError
from foredeck.hosts.host import dollars
from foredeck.hosts.protocol import Choice, CommandResult, CommandView, ViewKey, ViewRow
from foredeck.model.call_values import DEFAULT_TTL_S
from foredeck.model.figures import counted, cut, short_count
from foredeck.model.quoting import one_line
from foredeck.store.clock import now_ms

SHORT_ID = 13
FOUND = 20
_TITLE = 24

_OBJECT_KEYS: list[ViewKey] = [
    {"key": "enter", "label": "open", "run": "open {row}", "opens": True},
    {"key": "p", "label": "pin", "run": "pin {row}"},
    {"key": "u", "label": "unpin", "run": "unpin {row}"},
    {"key": "f", "label": "fold", "run": "fold {row}"},
    {"key": "w", "label": "why", "run": "why {row}", "opens": True},
]
_HEAD: ViewKey = {"key": "h", "label": "head", "run": "context head", "opens": True}


def window_view(opened: OpenedSession, *, largest: bool = False) -> CommandResult:
    """What fills the window, and the chat's objects, `largest` or newest first."""
    objects, chat = opened.session.objects, opened.session.chat
    fill, rows = filling(chat), listed_objects(objects, chat.branch)
    saved = figure_lines(chat.store, chat.info.id, chat.newest_record)[0]
    if largest:
        rows.sort(key=lambda row: -row.chars)
    totals = f"{counts(rows)}."
    plain = f" Plain Pi: {short_count(fill.host_tokens)}." if fill.host_tokens else ""
    title = f"{fill.verdict}{plain}"
    shown = [_object_row(row, fill.tokens(row.chars)) for row in rows]
    cells = [row["cells"] for row in shown]
    lines = [title, f"{fill.to_text()}." if fill.shares else "", totals]
    lines += [f"{name:<5} {state:<8} {size:>6}  {what}" for name, state, size, what in cells]
    other = ("context", "largest first") if not largest else ("view", "newest first")
    keys: list[ViewKey] = [*_OBJECT_KEYS, {"key": "s", "label": other[1], "run": other[0]}]
    view: CommandView = {
        "title": title,
        "notes": [f"Objects: {totals}", saved],
        "bar": [(kind, size, f"{kind} {short_count(size)}") for kind, size in fill.shares],
        "heads": ["", "state", "tokens", "object"],
        "rows": shown,
        "keys": [*keys, _HEAD] if before_the_chat(chat.branch) else keys,
        "empty": "There are no files and no tool results in this chat yet.",
    }
    return {"text": "\n".join(line for line in lines if line), "view": view}


def _object_row(row: Row, tokens: int) -> ViewRow:
    size = short_count(tokens) if tokens else ""
    return {"name": row.name, "cells": [row.name, row.state, size, one_line(row.what)]}


def context_command(opened: OpenedSession, arguments: str) -> CommandResult | str:
    """`/context`: a view; with `head` the block before the chat."""
    if not arguments:
        return window_view(opened, largest=True)
    if arguments != "head":
        raise ToolError("/context takes no words; /foredeck why @12 is about one object.")
    return before_the_chat(opened.session.chat.branch) or "foredeck shows nothing before the chat."


def open_command(opened: OpenedSession, name: str) -> str:
    return content_for_user(opened.session.objects, opened.session.chat, name)


def set_command(verb: str, opened: OpenedSession, name: str) -> str:
    """Pins, unpins or folds an object."""
    return change_state(opened.session.objects, opened.session.chat.branch, verb, name)


def name_command(opened: OpenedSession, arguments: str) -> str:
    return name_object(opened.session.objects, arguments)


def why_command(opened: OpenedSession, name: str) -> str:
    session, assembler = opened.session, opened.assembler
    return why(session.objects, session.chat, name, assembler.policy, assembler.finders.uses)


def object_choices(opened: OpenedSession, verb: str) -> Iterator[Choice]:
    """Objects that the verb changes."""
    for row in listed_objects(opened.session.objects, opened.session.chat.branch):
        is_pinned = row.state == PINNED
        fits = {"unpin": is_pinned, "pin": not is_pinned and row.state != FOLDED}
        if fits.get(verb, verb != "fold" or row.state != FOLDED):
            yield row.name, f"{row.state}  {row.what}"


def cost_command(opened: OpenedSession, _arguments: str) -> str:
    chat = opened.session.chat
    lines = figure_lines(chat.store, chat.info.id, chat.newest_record)
    by_call = f"`foredeck cost {chat.info.id[:SHORT_ID]}` explains it call by call."
    lost = chat.newest_record.lost_so_far.text if chat.newest_record else ""
    return "\n".join([*lines[:2], *([f"Lost to the model: {lost}."] if lost else []), by_call])


def trace_command(opened: OpenedSession, text: str) -> str:
    if not text:
        raise ToolError("Say what to look for: /foredeck trace NAME, a path or any other text.")
    chat = opened.session.chat
    nothing = NOT_KNOWN if chat.log.newest else "No call has been made yet."
    return text_of(trace(chat.store, chat.info.id, text, chat.branch.call)) or nothing


def search_command(opened: OpenedSession, query: str) -> CommandResult:
    if not query:
        raise ToolError("Say what to look for: /search WORDS, names or paths, in any order.")
    memory = opened.facilities.part(MemorySearch)
    if memory is None:
        raise ToolError("Search is switched off (tools.search in the configuration).")
    text, hits = memory.for_user(query, FOUND)
    answer: CommandResult = {"text": text}
    rows: list[ViewRow] = []
    for row in hits:
        opens = {"task": "tasks show", "memory": "memory show"}.get(row.type, "open")
        cells = [row.when, row.kind, cut(row.session, _TITLE), row.says]
        rows.append({"name": f"{opens} {row.name}", "cells": cells})
    if hits:
        answer["view"] = {
            "title": f"{len(hits)} found for {one_line(query)}",
            "notes": [],
            "bar": [],
            "heads": ["when", "what", "session", ""],
            "rows": rows,
            "keys": [{"key": "enter", "label": "open", "run": "{row}", "opens": True}],
            "empty": "",
        }
    return answer


def compact_command(opened: OpenedSession, arguments: str) -> str:
    """`/foredeck compact`: the newest compaction, or what one would say now."""
    objects, chat = opened.session.objects, opened.session.chat
    if arguments == "--preview":
        return preview(objects, chat, SUMMARY_CHARS)
    if arguments:
        raise ToolError(
            "/foredeck compact shows the newest compaction, /foredeck compact --preview what one "
            "would say now. /compact compacts."
        )
    return last_compaction(objects, chat.compactions)


MUCH_DOLLARS = 0.05
MUCH_REASONING = 10
"""Beyond either the user is asked first."""


def cost_of_off(opened: OpenedSession, _arguments: str) -> CommandResult:
    """What the next call costs more and loses."""
    chat = opened.session.chat
    plan, record = chat.branch.plan, chat.branch_record
    first = _first_edited(plan)
    if record is None or first is None:
        return {"text": ""}
    model, items = record.model, plan.items[first:]
    age_ms = now_ms() - max(record.time_ms, record.cache.warmed_ms)
    is_warm = age_ms <= (model.ttl_s or DEFAULT_TTL_S) * 1000
    tokens = int(sum(item.chars for item in items) / record.stats.rate) if is_warm else 0
    price = tokens * max(0.0, model.write - model.read) * model.input_price / 1_000_000
    reasoning = sum(
        plan.seals.binds(item) and REASONING not in op.folded
        for item, op in zip(items, plan.ops[first:], strict=True)
    )
    cost = f" ({dollars(price)})" if price else ""
    parts = [
        f"reads {tokens:,} tokens anew that are in the provider's cache now{cost}"
        if tokens
        else "",
        f"loses the reasoning behind {counted(reasoning, 'answer')}" if reasoning else "",
    ]
    parts = [part for part in parts if part]
    if not parts:
        return {"text": ""}
    is_much = price >= MUCH_DOLLARS or reasoning >= MUCH_REASONING
    return {"text": f"The next call {' and '.join(parts)}.", "asks": is_much}


def _first_edited(plan: Plan) -> int | None:
    for index, op in enumerate(plan.ops):
        if plan.says.get(index) or op.blocks is not None or plan.is_omitted(index):
            return index
    return None

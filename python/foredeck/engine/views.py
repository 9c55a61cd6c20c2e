"""The views of `/foredeck`, `/context` and `/search`: rows, and keys that act on them."""

from __future__ import annotations

from foredeck.context.state.chat import Chat
from foredeck.context.state.objects import Objects
from foredeck.context.tools.found import FoundRow
from foredeck.context.tools.listing import Row, before_the_chat, counts, filling, listed_objects
from foredeck.context.tools.memory_search import MemorySearch
from foredeck.engine.opened import OpenedSession
from foredeck.errors import ToolError
from foredeck.hosts.protocol import CommandResult, CommandView, ViewKey, ViewRow
from foredeck.model.figures import short_tokens
from foredeck.model.quoting import one_line

FOUND = 20
_TITLE = 24
"""Characters of a session's title in a row."""

_OBJECT_KEYS: list[ViewKey] = [
    {"key": "enter", "label": "open", "run": "open {row}", "opens": True},
    {"key": "p", "label": "pin", "run": "pin {row}"},
    {"key": "u", "label": "unpin", "run": "unpin {row}"},
    {"key": "f", "label": "fold", "run": "fold {row}"},
    {"key": "w", "label": "why", "run": "why {row}", "opens": True},
]
_HEAD: ViewKey = {"key": "h", "label": "head", "run": "context head", "opens": True}


def window_command(objects: Objects, chat: Chat, saved: str, *, largest: bool) -> CommandResult:
    """`/foredeck` and `/context`: what fills the window, and the objects of the chat.

    `saved`: what the session has cost beside plain Pi. `largest`: the largest objects first, else
    the newest.
    """
    found, rows = filling(chat), listed_objects(objects, chat.branch)
    if largest:
        rows.sort(key=lambda row: -row.chars)
    totals = f"{counts(rows)}."
    plain = f" Plain Pi: {short_tokens(found.host_tokens)}." if found.host_tokens else ""
    title = f"{found.verdict}{plain}"
    lines = [title, f"{found.to_text()}." if found.shares else "", totals]
    other = ("context", "largest first") if not largest else ("view", "newest first")
    keys: list[ViewKey] = [*_OBJECT_KEYS, {"key": "s", "label": other[1], "run": other[0]}]
    view: CommandView = {
        "title": title,
        "notes": [f"Objects: {totals}", saved],
        "bar": [(kind, size, f"{kind} {short_tokens(size)}") for kind, size in found.shares],
        "heads": ["", "state", "tokens", "object"],
        "rows": [_object_row(row, found.tokens(row.chars)) for row in rows],
        "keys": [*keys, _HEAD] if before_the_chat(chat.branch) else keys,
        "empty": "There are no files and no tool results in this chat yet.",
    }
    return {"text": "\n".join(line for line in lines if line), "view": view}


def objects_text(objects: Objects, chat: Chat) -> str:
    """`/foredeck list`: one line per object, the newest first, with totals above."""
    found, rows = filling(chat), listed_objects(objects, chat.branch)
    shown = [_object_row(row, found.tokens(row.chars))["cells"] for row in rows]
    lines = [f"{name:<5} {state:<8} {size:>6}  {what}" for name, state, size, what in shown]
    return "\n".join([counts(rows), *lines])


def _object_row(row: Row, tokens: int) -> ViewRow:
    size = short_tokens(tokens) if tokens else ""
    return {"name": row.name, "cells": [row.name, row.state, size, one_line(row.what)]}


def search_command(opened: OpenedSession, query: str) -> CommandResult:
    """`/search`: as the model's own search, in words for people, with what the model sees."""
    if not query:
        raise ToolError("Say what to look for: /search WORDS, names or paths, in any order.")
    memory = opened.facilities.tools.get(MemorySearch.name)
    if not isinstance(memory, MemorySearch):
        raise ToolError("Search is switched off (tools.search in the configuration).")
    text, found = memory.for_user(query, FOUND)
    answer: CommandResult = {"text": text}
    if found:
        answer["view"] = {
            "title": f"{len(found)} found for {one_line(query)}",
            "notes": [],
            "bar": [],
            "heads": ["when", "what", "session", ""],
            "rows": [_found_row(row) for row in found],
            "keys": [{"key": "enter", "label": "open", "run": "{row}", "opens": True}],
            "empty": "",
        }
    return answer


def _found_row(row: FoundRow) -> ViewRow:
    opened = {"task": "tasks show", "memory": "memory show"}.get(row.type, "open")
    session = row.session if len(row.session) <= _TITLE else f"{row.session[: _TITLE - 1]}…"
    return {"name": f"{opened} {row.name}", "cells": [row.when, row.kind, session, row.says]}

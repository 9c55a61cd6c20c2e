"""What a host with a screen shows as a view to move in: rows, and keys that act on them."""

from __future__ import annotations

from foredeck.context.state.chat import Chat
from foredeck.context.state.objects import Objects
from foredeck.context.status import short
from foredeck.context.tools.found import FoundRow
from foredeck.context.tools.listing import Row, before_the_chat, counts, filling, listed_objects
from foredeck.context.tools.memory_search import MemorySearch
from foredeck.engine.memory_commands import MemoryCommands
from foredeck.engine.opened import OpenedSession
from foredeck.errors import ToolError
from foredeck.hosts.protocol import CommandResult, CommandView, ViewKey, ViewRow
from foredeck.memory.describing import proposal_lines
from foredeck.memory.entry import MemoryEntry
from foredeck.memory.sections import day
from foredeck.model.quoting import one_line
from foredeck.tasks.board import Board, Task
from foredeck.tasks.claiming import holder
from foredeck.tasks.session import SessionTasks
from foredeck.tasks.wording import counts_line

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
_TASK_KEYS: list[ViewKey] = [
    {"key": "enter", "label": "show", "run": "tasks show {row}", "opens": True},
    {"key": "c", "label": "claim", "run": "tasks claim {row}"},
    {
        "key": "x",
        "label": "close",
        "run": "tasks close {row} {text}",
        "asks": "What came of it? Enter closes the task, Esc leaves it.",
    },
    {"key": "o", "label": "open again", "run": "tasks open {row}"},
    {
        "key": "n",
        "label": "new",
        "run": "tasks new {text}",
        "asks": "What is to be done? --priority 0 behind it for what is most urgent.",
    },
]
_WAITING_KEYS: list[ViewKey] = [
    {"key": "a", "label": "keep", "run": "memory accept {row}"},
    {"key": "i", "label": "keep instead", "run": "memory replace {row}"},
    {"key": "r", "label": "do not keep", "run": "memory refuse {row}"},
]
_MEMORY_KEYS: list[ViewKey] = [
    {"key": "enter", "label": "show", "run": "memory show {row}", "opens": True},
    {
        "key": "e",
        "label": "edit",
        "run": "memory edit {row} {text}",
        "asks": "What should it say?",
    },
    {"key": "d", "label": "delete", "run": "memory delete {row}"},
    {
        "key": "n",
        "label": "new",
        "run": "memory add {text}",
        "asks": "What should be remembered?",
    },
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
    plain = f" Plain Pi: {short(found.host_tokens)}." if found.host_tokens else ""
    title = f"{found.verdict}{plain}"
    lines = [title, f"{found.to_text()}." if found.shares else "", totals]
    other = ("context", "largest first") if not largest else ("view", "newest first")
    keys: list[ViewKey] = [*_OBJECT_KEYS, {"key": "s", "label": other[1], "run": other[0]}]
    view: CommandView = {
        "title": title,
        "notes": [f"Objects: {totals}", saved],
        "bar": [(kind, size, f"{kind} {short(size)}") for kind, size in found.shares],
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
    size = short(tokens) if tokens else ""
    return {"name": row.name, "cells": [row.name, row.state, size, one_line(row.what)]}


def tasks_view(tasks: SessionTasks) -> CommandResult:
    """`/tasks`: those that can be worked on first, then those that wait, then what is closed."""
    board, now_ms = tasks.work.board, tasks.work.now_ms()
    board.refresh()
    ready = board.ready(len(board.all()), now_ms)
    order = {task.id: n for n, task in enumerate([*board.in_progress(), *ready])}
    listed = sorted(board.all(), key=lambda task: (task.is_closed, order.get(task.id, len(order))))
    session = tasks.work.actor.session
    rows = [_task_row(board, task, session, is_ready=task in ready) for task in listed]
    title = counts_line(board, now_ms) if rows else "This project has no tasks yet."
    first = [f"{row['name']} {row['cells'][3]}" for row in rows[:2] if row["cells"][1] != "closed"]
    view: CommandView = {
        "title": f"Tasks: {title}" if rows else title,
        "notes": [],
        "bar": [],
        "heads": ["", "state", "priority", "task"],
        "rows": rows,
        "keys": _TASK_KEYS,
        "empty": "n makes one.",
    }
    return {"text": "\n".join([title, *first]), "view": view}


def _task_row(board: Board, task: Task, session: str | None, *, is_ready: bool) -> ViewRow:
    name = board.names.name(task.id)
    waits = [board.names.name(each.id) for each in board.open_blockers(task)]
    state = "ready" if is_ready else f"waits for {waits[0]}" if waits else "open"
    if task.is_closed:
        state = "closed"
    elif task.status == "in_progress" and not is_ready:
        state = "claimed here" if task.session == session else f"with {holder(task)}"
    labels = "".join(f" #{label}" for label in task.labels)
    cells = [name, state, f"P{task.priority}", task.called + labels]
    return {"name": name, "cells": [one_line(cell) for cell in cells]}


def memory_view(memory: MemoryCommands) -> CommandResult:
    """`/memory`: what waits for the user's word first, then what is kept."""
    waiting, kept = memory.entries()
    wait = "1 waits" if len(waiting) == 1 else f"{len(waiting)} wait"
    title = f"Memory: {len(kept)} kept" + (f", {wait} for your word." if waiting else ".")
    rows = [
        *(
            _memory_row(each.name, each.entry, "waits") | {"about": proposal_lines(each)}
            for each in waiting
        ),
        *(_memory_row(memory.name(entry), entry, "kept") for entry in kept),
    ]
    view: CommandView = {
        "title": title,
        "notes": [],
        "bar": [],
        "heads": ["", "state", "whose word", "holds", "learned", "entry"],
        "rows": rows,
        "keys": [*_MEMORY_KEYS[:1], *(_WAITING_KEYS if waiting else []), *_MEMORY_KEYS[1:]],
        "empty": "Nothing is remembered yet: n keeps something.",
    }
    hint = "/memory inbox lists what waits, /memory list what is kept."
    return {"text": f"{title}\n{hint}" if rows else view["empty"], "view": view}


_PLACES = {"session": "in this session", "findings": "finding"}


def _memory_row(name: str, entry: MemoryEntry, state: str) -> ViewRow:
    document = entry.document
    whose = {"user-stated": "yours"}.get(entry.trust, "a model's")
    if document.tool_originated:
        whose = "a tool's"
    here = "in this project" if document.scope == "project" else "everywhere"
    fact = one_line(document.fact)
    holds = _PLACES.get(document.place, here)
    cells = [name, state, whose, holds, day(document.learned_ms), fact]
    return {"name": name, "cells": cells, "fill": fact}


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

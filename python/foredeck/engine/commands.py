"""What the user types after `/foredeck`, and after `/context`, `/tasks` and `/search`;
and what could be typed there: objects, tasks, entries of memory, modes.

Imported with the first of them: most of what answers is used for nothing else.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

from foredeck.accounting.figure import figure_lines
from foredeck.accounting.trace import text_of, trace
from foredeck.context.tools.found import FoundRow
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
from foredeck.engine.compact_command import compact_text
from foredeck.engine.memory_commands import memory_commands, memory_view
from foredeck.engine.observing.facility import observe_command
from foredeck.engine.opened import OpenedSession
from foredeck.engine.privacy import go_private
from foredeck.engine.switching_off import cost_of_off
from foredeck.engine.tasks import tasks_command, tasks_of, tasks_view
from foredeck.errors import ToolError
from foredeck.home import command_file
from foredeck.hosts.protocol import CommandResult, CommandView, ViewKey, ViewRow
from foredeck.model.figures import cut, short_tokens
from foredeck.model.observations import Mode
from foredeck.model.quoting import one_line
from foredeck.store.clock import now_ms
from foredeck.timeline.rewind_command import calls_with_changes, rewind_command

SHORT_ID = 13
"""Characters of a session's id that tell it from all others: the moment at which it began."""

COMMANDS = (
    "list, context, open, pin, unpin, fold, name, why, cost, observe, compact, private, "
    "rewind, trace"
)
"""Those of `/foredeck`."""

MOST = 50
"""How many choices are offered for what is typed."""
_OBJECTS = frozenset({"open", "pin", "unpin", "fold", "name", "why"})
_ENTRIES = frozenset(
    {"show", "accept", "replace", "edit", "refuse", "pin", "scope", "confirm", "delete"}
)
_WAITING = frozenset({"accept", "replace", "refuse"})
_TASKS = frozenset({"claim", "close", "open", "show"})

Choice = tuple[str, str]

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


def run_command(opened: OpenedSession, name: str, args: str) -> CommandResult:
    """The answer, for the user to read. Raises `ToolError` with what to type instead."""
    session = opened.session
    if name in ("view", "context") and not args:
        return _window(opened, largest=name == "context")
    if name == "private":
        return {"text": go_private(session.objects, session.chat), "private": True}
    if name == "off":
        return cost_of_off(session.chat, now_ms())
    if name == "search":
        return _search(opened, args)
    if name == "tasks" and not args:
        return tasks_view(tasks_of(opened))
    if name == "memory" and not args:
        return memory_view(memory_commands(opened))
    if name == "complete":
        return {"text": "", "choices": choices(opened, args)}
    return {"text": _text(opened, name, args)}


def _text(opened: OpenedSession, name: str, arguments: str) -> str:
    session = opened.session
    match name:
        case "list":
            return _objects_text(opened)
        case "context":
            if arguments != "head":
                raise ToolError("/context takes no words; /foredeck why @12 is about one object.")
            return before_the_chat(session.chat.branch) or "foredeck shows nothing before the chat."
        case "open":
            return content_for_user(session.objects, session.chat, arguments)
        case "pin" | "unpin" | "fold":
            return change_state(session.objects, session.chat.branch, name, arguments)
        case "name":
            return name_object(session.objects, arguments)
        case "why":
            return why(
                session.objects,
                session.chat,
                arguments,
                opened.assembler.policy,
                opened.assembler.uses,
            )
        case "cost":
            return _cost(opened)
        case "observe":
            return observe_command(tuple(opened.facilities.workers), arguments)
        case "compact":
            return compact_text(opened, arguments)
        case "rewind":
            return rewind_command(
                session.objects.store, session.info, opened.config.home, arguments
            )
        case "tasks":
            return tasks_command(opened, arguments)
        case "memory":
            return memory_commands(opened).run(arguments)
        case "trace":
            return _trace(opened, arguments)
        case "path":
            return put_on_path(opened.config.home)
    raise ToolError(f"foredeck has no command {name!r}. Commands: {COMMANDS}.")


def _cost(opened: OpenedSession) -> str:
    chat = opened.session.chat
    lines = figure_lines(chat.store, chat.info.id, chat.newest_record)
    by_call = f"`foredeck cost {chat.info.id[:SHORT_ID]}` explains it call by call."
    lost = chat.newest_record.lost_so_far.text if chat.newest_record else ""
    return "\n".join([*lines[:2], *([f"Lost to the model: {lost}."] if lost else []), by_call])


def _trace(opened: OpenedSession, text: str) -> str:
    if not text:
        raise ToolError("Say what to look for: /foredeck trace NAME, a path or any other text.")
    chat = opened.session.chat
    nothing = NOT_KNOWN if chat.log.newest else "No call has been made yet."
    return text_of(trace(chat.store, chat.info.id, text, chat.branch.call)) or nothing


# The views of `/foredeck`, `/context` and `/search`: rows, and keys that act on them


def _window(opened: OpenedSession, *, largest: bool) -> CommandResult:
    """`/foredeck` and `/context`: what fills the window, and the objects of the chat.
    `largest`: the largest objects first, else the newest."""
    objects, chat = opened.session.objects, opened.session.chat
    found, rows = filling(chat), listed_objects(objects, chat.branch)
    saved = figure_lines(chat.store, chat.info.id, chat.newest_record)[0]
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


def _objects_text(opened: OpenedSession) -> str:
    """`/foredeck list`: one line per object, the newest first, with totals above."""
    chat = opened.session.chat
    found, rows = filling(chat), listed_objects(opened.session.objects, chat.branch)
    shown = [_object_row(row, found.tokens(row.chars))["cells"] for row in rows]
    lines = [f"{name:<5} {state:<8} {size:>6}  {what}" for name, state, size, what in shown]
    return "\n".join([counts(rows), *lines])


def _object_row(row: Row, tokens: int) -> ViewRow:
    size = short_tokens(tokens) if tokens else ""
    return {"name": row.name, "cells": [row.name, row.state, size, one_line(row.what)]}


def _search(opened: OpenedSession, query: str) -> CommandResult:
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
    cells = [row.when, row.kind, cut(row.session, _TITLE), row.says]
    return {"name": f"{opened} {row.name}", "cells": cells}


# The command line on the PATH; what is completed


def put_on_path(home: Path) -> str:
    """Link the command line where shells look for programs of this user; on Windows it is copied.
    Gives what the user reads. Raises `ToolError` where another program has its name, or where it
    cannot be put there."""
    file = command_file(home)
    if file is None:
        raise ToolError("There is no command line yet: type /foredeck setup first.")
    is_windows = sys.platform == "win32"
    local = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    folder = (
        Path(local, "Microsoft", "WindowsApps") if is_windows else Path.home() / ".local" / "bin"
    )
    target = folder / file.name
    try:
        # Also a link that leads nowhere is not replaced: a user made it.
        if not os.path.lexists(target):
            folder.mkdir(parents=True, exist_ok=True)
            (shutil.copyfile if is_windows else os.symlink)(file, target)
        is_ours = (
            filecmp.cmp(file, target, shallow=False)
            if is_windows
            else target.resolve() == file.resolve()
        )
    except OSError as error:
        raise ToolError(f"{target} cannot be made or read: {error}.") from error
    if not is_ours:
        again = "remove it, then type /foredeck setup path again"
        raise ToolError(f"{target} is there already; {again}.")
    found = f"{target} runs foredeck's command line."
    if shutil.which("foredeck"):
        return found
    return f"{found} Add {folder} to your PATH to type just foredeck."


def choices(opened: OpenedSession, typed: str) -> list[Choice]:
    """What could stand in place of the arguments as typed, with a description each: the first word
    is the command, the second its verb, and all that follows is to be found in a choice. None where
    one of them is typed already, so that Enter sends it."""
    command, _, rest = typed.partition(" ")
    verb, _, begun = rest.partition(" ")
    known = list(_known(opened, command, verb))
    if any(begun in (name, name.removeprefix("@")) for name, _ in known):
        return []
    wanted = begun.lower().removeprefix("@")
    found = [(n, text) for n, text in known if wanted in f"{n} {text}".lower()]
    return [(f"{verb} {name}", one_line(text)) for name, text in found[:MOST]]


def _known(opened: OpenedSession, command: str, verb: str) -> Iterator[Choice]:
    match command, verb:
        case "foredeck", "observe":
            yield from _words("yes", "status", "reflect", *(f"mode {m}" for m in get_args(Mode)))
        case "foredeck", "compact":
            yield from _words("--preview")
        case "foredeck", "setup":
            yield from _words("path")
        case "foredeck", "rewind":
            yield from calls_with_changes(opened.session.objects.store, opened.session.info)
        case "foredeck", _ if verb in _OBJECTS:
            yield from _objects(opened, verb)
        case "tasks", _ if verb in _TASKS:
            yield from _tasks(opened, verb)
        case "memory", _ if verb in _ENTRIES:
            memory = memory_commands(opened)
            waiting, kept = memory.entries()
            yield from ((each.name, each.entry.document.fact) for each in waiting)
            if verb not in _WAITING:
                yield from ((memory.name(entry), entry.document.fact) for entry in kept)


def _words(*words: str) -> Iterable[Choice]:
    return ((word, "") for word in words)


def _objects(opened: OpenedSession, verb: str) -> Iterator[Choice]:
    for row in listed_objects(opened.session.objects, opened.session.chat.branch):
        is_pinned = row.state == PINNED
        fits = {"unpin": is_pinned, "pin": not is_pinned and row.state != FOLDED}
        if fits.get(verb, verb != "fold" or row.state != FOLDED):
            yield row.name, f"{row.state}  {row.what}"


def _tasks(opened: OpenedSession, verb: str) -> Iterator[Choice]:
    tasks = opened.facilities.tasks
    if tasks is None:
        return
    board = tasks.work.board
    board.refresh()
    for task in board.all():
        if verb == "show" or task.is_closed == (verb == "open") or task.status == "in_progress":
            yield board.names.name(task.id), task.called

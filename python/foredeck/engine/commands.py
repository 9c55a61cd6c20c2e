"""Commands typed by the user, with completion."""

from __future__ import annotations

import filecmp
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from foredeck.accounting.figure import figure_lines
from foredeck.accounting.trace import trace
from foredeck.accounting.trace_spans import text_of
from foredeck.context.calls.call import SUMMARY_CHARS
from foredeck.context.compactions import last_compaction, preview
from foredeck.context.plan.ops import REASONING
from foredeck.context.plan.plan import Plan
from foredeck.context.state.chat import Chat
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
from foredeck.engine.memory_commands import findings_view, memory_commands, memory_view
from foredeck.engine.observing import Observing
from foredeck.engine.observing_facility import MODES, observe_command
from foredeck.engine.opened import OpenedSession
from foredeck.engine.opening import go_private
from foredeck.engine.tasks import tasks_command, tasks_of, tasks_view
from foredeck.errors import ToolError
from foredeck.home import command_file
from foredeck.hosts.host import dollars
from foredeck.hosts.protocol import CommandResult, CommandView, ViewKey, ViewRow
from foredeck.model.call_values import DEFAULT_TTL_S
from foredeck.model.figures import counted, cut, short_count
from foredeck.model.quoting import one_line
from foredeck.store.clock import now_ms
from foredeck.tasks.session import SessionTasks
from foredeck.timeline.rewind_command import calls_with_changes, rewind_command

SHORT_ID = 13

COMMANDS = (
    "context, open, pin, unpin, fold, name, why, cost, observe, compact, private, rewind, trace"
)
"""Of `/foredeck`."""

MOST = 50
"""Most completions."""
_OBJECTS = frozenset({"open", "pin", "unpin", "fold", "name", "why"})
_ENTRIES = frozenset({"show", "accept", "edit", "refuse", "scope", "delete"})
_TASKS = frozenset({"claim", "close", "open", "show"})

Choice = tuple[str, str]

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


def run_command(opened: OpenedSession, name: str, args: str) -> CommandResult:
    """The answer for the user. Raises `ToolError` with what to type instead."""
    session = opened.session
    if name in ("view", "context") and not args:
        return _window(opened, largest=name == "context")
    if name == "private":
        return {"text": go_private(session.objects, session.chat), "private": True}
    if name == "off":
        return cost_of_off(session.chat)
    if name == "search":
        return _search(opened, args)
    if name == "tasks" and not args:
        return tasks_view(tasks_of(opened))
    if name == "memory" and not args:
        return memory_view(memory_commands(opened))
    verb, _, tag = args.partition(" ")
    if name == "memory" and verb == "findings" and tag.strip() not in ("on", "off"):
        return findings_view(memory_commands(opened), tag.strip())
    if name == "complete":
        return {"text": "", "choices": choices(opened, args)}
    return {"text": _text(opened, name, args)}


def _text(opened: OpenedSession, name: str, arguments: str) -> str:
    session = opened.session
    match name:
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
            return observe_command(opened.facilities.part(Observing), arguments)
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


def _search(opened: OpenedSession, query: str) -> CommandResult:
    if not query:
        raise ToolError("Say what to look for: /search WORDS, names or paths, in any order.")
    memory = opened.facilities.tools.get(MemorySearch.name)
    if not isinstance(memory, MemorySearch):
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


# The command line on the PATH; what is completed


def put_on_path(home: Path) -> str:
    """Links (on Windows copies) the command line into the user's program folder. Raises
    `ToolError`."""
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
    text = f"{target} runs foredeck's command line."
    if shutil.which("foredeck"):
        return text
    return f"{text} Add {folder} to your PATH to type just foredeck."


def choices(opened: OpenedSession, typed: str) -> list[Choice]:
    """Completions of the typed arguments; none if one is complete, so that Enter sends it."""
    command, _, rest = typed.partition(" ")
    verb, _, typed_name = rest.partition(" ")
    available = list(_known(opened, command, verb))
    if any(typed_name in (name, name.removeprefix("@")) for name, _ in available):
        return []
    needle = typed_name.lower().removeprefix("@")
    matches = [(n, text) for n, text in available if needle in f"{n} {text}".lower()]
    return [(f"{verb} {name}", one_line(text)) for name, text in matches[:MOST]]


def _known(opened: OpenedSession, command: str, verb: str) -> Iterator[Choice]:
    match command, verb:
        case "foredeck", "observe":
            yield from _words("yes", "status", "reflect", *(f"mode {mode}" for mode in MODES))
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
            waiting, entries = memory.entries()
            yield from ((each.name, each.entry.document.fact) for each in waiting)
            if verb != "refuse":
                yield from ((memory.name(entry), entry.document.fact) for entry in entries)


def _words(*words: str) -> Iterable[Choice]:
    return ((word, "") for word in words)


def _objects(opened: OpenedSession, verb: str) -> Iterator[Choice]:
    for row in listed_objects(opened.session.objects, opened.session.chat.branch):
        is_pinned = row.state == PINNED
        fits = {"unpin": is_pinned, "pin": not is_pinned and row.state != FOLDED}
        if fits.get(verb, verb != "fold" or row.state != FOLDED):
            yield row.name, f"{row.state}  {row.what}"


def _tasks(opened: OpenedSession, verb: str) -> Iterator[Choice]:
    tasks = opened.facilities.part(SessionTasks)
    if tasks is None:
        return
    board = tasks.work.board
    board.refresh()
    for task in board.all():
        if verb == "show" or task.is_closed == (verb == "open") or task.status == "in_progress":
            yield board.names.name(task.id), task.called


def compact_text(opened: OpenedSession, arguments: str) -> str:
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


def cost_of_off(chat: Chat) -> CommandResult:
    """What the next call costs more and loses."""
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

"""What could be typed after a command in Pi, as far as the engine knows: objects, tasks, entries of
memory, modes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

from foredeck.context.tools.listing import FOLDED, PINNED, listed_objects
from foredeck.engine.memory_commands import memory_commands
from foredeck.engine.opened import OpenedSession
from foredeck.model.observations import Mode
from foredeck.model.quoting import one_line
from foredeck.timeline.rewind_command import calls_with_changes

MOST = 50
_OBJECTS = frozenset({"open", "pin", "unpin", "fold", "name", "describe", "why"})
_ENTRIES = frozenset(
    {"show", "accept", "replace", "edit", "refuse", "pin", "demote", "scope", "confirm", "delete"}
)
_WAITING = frozenset({"accept", "replace", "refuse"})
_TASKS = frozenset({"claim", "close", "open", "show"})

Choice = tuple[str, str]


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
            yield from _words("--preview", "--calls")
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
    tasks = opened.features.tasks
    if tasks is None:
        return
    board = tasks.work.board
    board.refresh()
    for task in board.all():
        if verb == "show" or task.is_closed == (verb == "open") or task.status == "in_progress":
            yield board.names.name(task.id), task.called

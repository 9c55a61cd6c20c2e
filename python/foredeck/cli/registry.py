"""The commands by name. The module of each is imported when the command is run."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from foredeck.store.registry import STORES

_BENCH = "foredeck_bench"


def _bench_commands() -> dict[str, str]:
    """The commands of those who build foredeck, which are no part of an installed package."""
    if find_spec(_BENCH) is None:
        return {}
    commands: dict[str, str] = import_module(f"{_BENCH}.commands").BENCH_COMMANDS
    return commands


COMMANDS: dict[str, str] = {
    "sessions": "list the stored sessions",
    "show": "print what the model saw at a call",
    "cost": "say what a session has cost, and why each lost cache hit was lost",
    "report": "say on one page what a session has cost and done",
    "blame": "say which prompt wrote each line of a file",
    "trace": "say at which calls the model could see a text",
    "history": "list the versions of an object",
    "cat": "print the content of an object, as it is or was",
    "diff": "show what changed between two versions of an object",
    "restore": "put a backup back; or bring the files of a session to what they were at a call",
    "search": "find messages, tool calls, files and summaries by the words in them",
    "reindex": "make the index of `foredeck search` again from the store",
    "name": "give an object a nickname",
    "describe": "show or set what stands for an object while its content is not in view",
    "tasks": "list, make, claim, close and connect the tasks of a project",
    "index": "take files and folders into the store without an agent",
    "renames": "list and repair renames that nobody saw",
    "notes": "list the notes, and what is wrong with their links",
    "note": "make a note from a template",
    "memory": "show, add, accept, change and delete what is remembered, and say where it is from",
    "working": "show or change the page that a project keeps from session to session",
    "observations": "show, edit or delete what was noted of a session's chat",
    "graph": "show what refers to an object, and what it refers to",
    "backlinks": "list the references to an object",
    "tags": "list the tags of all notes",
    "expand": "print objects and what they refer to, within a budget",
    "export": "write a session with all its objects to a file",
    "import": "read a session that was exported",
    "backup": "write everything that is stored into one file, while sessions go on",
    "ingest": "read the histories that coding agents have kept into the store",
    "purge": "put a text, or an object with all that came from it, out of everything stored",
    "forget": "erase a session and what belongs to it alone",
    "prune": "take the text of old messages away that summaries stand for",
    "vacuum": "give the space of what was erased back to the disk",
    "doctor": "check this machine and say what to do about each finding",
    "config": "print every setting with its value and where it came from",
    "replay": "drive the engine with recorded sessions and say what a model would have seen",
    "eval": "compare plain Pi and foredeck on tasks, with a model of your choice",
    "migrate": "copy everything from one store to another, SQLite or XTDB",
    **{name: text for store in STORES.values() for name, text in store.commands.items()},
    "ui": "show what is stored in the browser",
    "mcp": "serve search, objects, notes and tasks to clients of the Model Context Protocol",
    "engine": "serve one host over stdin and stdout (started by the Pi extension)",
    **_bench_commands(),
}
"""`{name: one-line summary}`. A command NAME lives in foredeck.cli.NAME_command as COMMAND, one of
a store in the store's package, those of `foredeck bench` in foredeck_bench.commands."""

_SHARED = {
    "history": "history",
    "cat": "history",
    "diff": "history",
    "export": "transfer",
    "import": "transfer",
    "forget": "forget",
    "vacuum": "forget",
    "backlinks": "graph",
    "graph": "graph",
    "tags": "graph",
}
"""Commands that share a module, where COMMANDS has them by name."""

_APART = {"ui": "ui", "mcp": "mcp_server"}
"""Commands with a package of their own."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the command line.

    description  what it does, shown by --help
    example      one command line that is worth trying
    configure    adds its arguments to a parser
    run          does it; returns the exit code, or raises ForedeckError
    """

    description: str
    example: str
    configure: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]


def load(name: str) -> Command:
    """The command of a name in COMMANDS."""
    module = import_module(_module_of(name))
    command = module.COMMANDS[name] if name in _SHARED else module.COMMAND
    assert isinstance(command, Command)
    return command


def _module_of(name: str) -> str:
    if name == "bench":
        return f"{_BENCH}.commands.measure"
    if name.startswith("bench "):
        return f"{_BENCH}.commands.{name.removeprefix('bench ')}"
    if name in _APART:
        return f"foredeck.{_APART[name]}.command"
    for store in STORES.values():
        if name in store.commands:
            return f"{store.package}.commands.{name}_command"
    return f"foredeck.cli.{_SHARED.get(name, name)}_command"

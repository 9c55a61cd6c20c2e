"""The commands by name: what each takes is imported with its help, what it does when it runs."""

from __future__ import annotations

import gc
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from foredeck.store import STORES

_BENCH = "foredeck_bench"


def _bench_commands() -> dict[str, str]:
    """The commands of those who build foredeck, which are no part of an installed package."""
    if find_spec(_BENCH) is None:
        return {}
    commands: dict[str, str] = import_module(f"{_BENCH}.commands").BENCH_COMMANDS
    return commands


GROUPS: dict[str, dict[str, str]] = {
    "Use what is stored": {
        "sessions": "list the stored sessions",
        "search": "search messages, tool calls, files and summaries",
        "cost": "show what sessions cost beside plain Pi, and what one of them did",
        "tasks": "list, create, claim, close and connect a project's tasks",
        "notes": "list notes, find broken links, or make a new note",
        "memory": "show and change what is remembered across sessions",
        "working": "show or change the page that a project keeps across sessions",
        "ui": "open the inspector in the browser",
        "mcp": "serve search, objects, notes and tasks to MCP clients",
        "proxy": "run any coding agent with foredeck between it and its model",
    },
    "Look into a session or an object": {
        "show": "show what the model saw at a call",
        "trace": "show at which calls the model could see a text",
        "blame": "show which prompt wrote each line of a file",
        "history": "list the versions of an object, or compare two",
        "cat": "print the content of an object, as it is or was",
        "graph": "show what refers to an object, and what it refers to",
        "expand": "print objects and what they refer to, within a budget",
        "name": "give an object a nickname or a summary",
        "observations": "show, edit or delete the notes taken of a session's chat",
    },
    "Add, keep and move": {
        "ingest": "read the histories that coding agents have kept",
        "index": "add files and folders to the store",
        "export": "write a session with all its objects to a file",
        "import": "read a session that was exported",
        "backup": "write the whole store to one file",
        "restore": "restore a backup, or a session's files as of a call",
        "migrate": "copy everything from one store to another, SQLite or XTDB",
        **{name: text for store in STORES.values() for name, text in store.commands.items()},
    },
    "Repair and remove": {
        "doctor": "check this machine, and say how to fix what it finds",
        "config": "show every setting, its value, and where it was set",
        "renames": "list and repair renames that went unnoticed",
        "purge": "remove a text or an object from everything that is stored",
        "forget": "delete a session and what belongs to it alone",
        "prune": "remove the text of old messages that have been summarized",
        "vacuum": "return the disk space of deleted data",
    },
    "Measure": {
        "replay": "run recorded sessions through foredeck, and show what a model would have seen",
        "eval": "compare plain Pi and foredeck on tasks, with a model of your choice",
    },
    "Started by the Pi extension": {"engine": "serve one host over stdin and stdout"},
}
"""The commands in the order of `foredeck --help`: `{name: one-line summary}` by heading."""

COMMANDS: dict[str, str] = {
    **{name: text for group in GROUPS.values() for name, text in group.items()},
    **_bench_commands(),
}
"""All commands."""

RENAMED: dict[str, tuple[str, ...]] = {
    "backlinks": ("graph", "--backlinks"),
    "describe": ("name",),
    "diff": ("history", "--diff"),
    "note": ("notes", "--new"),
    "reindex": ("doctor", "--rebuild"),
    "report": ("cost", "--report"),
    "tags": ("graph", "--tags"),
    "xtdb backup": ("backup", "--set", "store=xtdb"),
    "xtdb restore": ("restore", "--set", "store=xtdb"),
}
"""Commands of the version before, by their first words, and what they are now."""

_ARGUMENTS = {
    "use": ("sessions", "search", "cost", "notes", "working"),
    "records": ("tasks", "memory"),
    "look": (
        *("show", "trace", "blame", "history", "cat", "graph", "expand", "name", "observations"),
    ),
    "keep": ("ingest", "index", "export", "import", "backup", "restore", "migrate"),
    "repair": ("doctor", "config", "renames", "purge", "forget", "prune", "vacuum"),
    "measure": ("replay", "eval", "engine"),
}
"""The module of `cli/arguments/` in whose `COMMANDS` a command is."""

_APART = {"ui": "ui", "mcp": "mcp_server", "proxy": "proxy"}
"""Commands with a package of their own, whose `command.py` has them as `COMMAND`, as the modules of
a store's commands and those of `foredeck bench` do."""


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


NO_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"
"""Where it is set, pydantic does not look for plugins in all packages when a model is made."""


def later(module: str, function: str = "run") -> Callable[[Namespace], int]:
    """A function of a module of `foredeck.cli`, which is imported once the command runs: help and
    errors of usage do without what the work takes."""

    def run(args: Namespace) -> int:
        enabled, is_ours = gc.isenabled(), NO_PLUGINS not in os.environ
        gc.disable()  # what imports leave behind stays: looking for garbage in it only costs time
        os.environ.setdefault(NO_PLUGINS, "1")
        try:
            command = getattr(import_module(f"foredeck.cli.{module}"), function)
        finally:
            if is_ours:  # an agent or editor that the command starts may have plugins
                del os.environ[NO_PLUGINS]
            if enabled:
                gc.enable()
        code: int = command(args)
        return code

    return run


def load(name: str) -> Command:
    """The command of a name in COMMANDS."""
    for group, names in _ARGUMENTS.items():
        if name in names:
            command = import_module(f"foredeck.cli.arguments.{group}").COMMANDS[name]
            break
    else:
        command = import_module(_module_of(name)).COMMAND
    assert isinstance(command, Command)
    return command


def _module_of(name: str) -> str:
    if name in _bench_commands():
        return f"{_BENCH}.{import_module(f'{_BENCH}.commands').MODULES[name]}"
    if name in _APART:
        return f"foredeck.{_APART[name]}.command"
    for store in STORES.values():
        if name in store.commands:
            return f"{store.package}.commands.{name}_command"
    raise LookupError(f"`{name}` is in GROUPS: name it in _ARGUMENTS, too (cli/registry.py)")

"""The commands, each imported when it runs."""

from __future__ import annotations

import gc
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from foredeck.store import STORES, Registered


class Listed(NamedTuple):
    """A command as `foredeck --help` lists it; `module` has its `Command`."""

    module: str
    summary: str


def _commands_of(store: Registered) -> Iterator[tuple[str, Listed]]:
    for name, summary in store.commands.items():
        yield name, Listed(f"{store.package}.{name}_command", summary)


def _bench_commands() -> dict[str, Listed]:
    if find_spec("foredeck_bench") is None:
        return {}
    listed = import_module("foredeck_bench").BENCH_COMMANDS
    return {n: Listed(f"foredeck_bench.{module}", text) for n, (module, text) in listed.items()}


GROUPS: dict[str, dict[str, Listed]] = {
    "Use what is stored": {
        "sessions": Listed("use", "list the stored sessions"),
        "objects": Listed("use", "list the stored objects, by type, name, state or session"),
        "search": Listed("use", "search messages, tool calls, files and summaries"),
        "cost": Listed("use", "show what sessions cost beside plain Pi"),
        "tasks": Listed("records", "list, create, claim, close and connect a project's tasks"),
        "notes": Listed("use", "list notes, and find broken links"),
        "memory": Listed("records", "show and change what is remembered across sessions"),
        "working": Listed("use", "show or change the page that a project keeps across sessions"),
        "ui": Listed("use", "open the inspector in the browser"),
        "mcp": Listed("use", "serve search, objects, notes and tasks to MCP clients"),
        "proxy": Listed("use", "run any coding agent with foredeck between it and its model"),
        "carry": Listed("use", "let a session go on in another agent"),
    },
    "Look into a session or an object": {
        "show": Listed("look", "show what the model saw at a call"),
        "trace": Listed("look", "show at which calls the model could see a text"),
        "blame": Listed("look", "show which prompt wrote each line of a file"),
        "history": Listed("look", "list the versions of an object, or compare two"),
        "cat": Listed("look", "print the content of an object, as it is or was"),
        "graph": Listed("look", "show or print what refers to an object, and what it refers to"),
        "name": Listed("look", "give an object a nickname or a summary"),
        "observations": Listed("look", "show, edit or delete the notes taken of a session's chat"),
    },
    "Add, keep and move": {
        "ingest": Listed("upkeep", "read the histories that coding agents have kept"),
        "index": Listed("upkeep", "add files and folders to the store"),
        "export": Listed("upkeep", "write a session with all its objects to a file"),
        "import": Listed("upkeep", "read a session that was exported"),
        "backup": Listed("upkeep", "write the whole store to one file"),
        "restore": Listed("upkeep", "restore a backup, or a session's files as of a call"),
        "migrate": Listed("upkeep", "copy everything from one store to another, SQLite or XTDB"),
        **{name: row for store in STORES.values() for name, row in _commands_of(store)},
    },
    "Repair and remove": {
        "doctor": Listed("upkeep", "check this machine, rebuild indexes, return disk space"),
        "config": Listed("upkeep", "show every setting, its value, and where it was set"),
        "purge": Listed("upkeep", "remove a text or an object from everything that is stored"),
        "forget": Listed("upkeep", "delete a session, or the text of old summarized messages"),
    },
    "Measure": {
        "replay": Listed(
            "measure",
            "run recorded sessions through foredeck, and show what a model would have seen",
        ),
        "eval": Listed(
            "measure", "compare plain Pi and foredeck on tasks, with a model of your choice"
        ),
    },
    "Started by the Pi extension": {
        "engine": Listed("measure", "serve one host over stdin and stdout")
    },
}
"""The commands in the order of `foredeck --help`, by heading."""

COMMANDS: dict[str, Listed] = {
    **{name: listed for group in GROUPS.values() for name, listed in group.items()},
    **_bench_commands(),
}
"""All commands."""


class Command(NamedTuple):
    """One command; `run` returns the exit code, or raises ForedeckError."""

    description: str
    example: str
    configure: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]


NO_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"
"""If set, pydantic does not search all packages for plugins."""


def later(place: str) -> Callable[[Namespace], int]:
    """A function, by default `run`, of a module that is imported once the command runs."""
    name, _, function = place.partition(":")
    module = name if "." in name else f"foredeck.cli.{name}"

    def run(args: Namespace) -> int:
        enabled, is_ours = gc.isenabled(), NO_PLUGINS not in os.environ
        gc.disable()  # what imports leave behind stays: looking for garbage in it only costs time
        os.environ.setdefault(NO_PLUGINS, "1")
        try:
            command = getattr(import_module(module), function or "run")
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
    module = COMMANDS[name].module
    if "." in module:
        command = import_module(module).COMMAND
    else:
        command = getattr(import_module(f"foredeck.cli.arguments.{module}"), name.upper())
    assert isinstance(command, Command)
    return command

"""Which commands there are. Their modules are imported one at a time, when asked for."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

COMMANDS: dict[str, str] = {
    "engine": "serve one host over stdin and stdout (started by the Pi extension)",
    "config": "print every setting with its value and where it came from",
    "replay": "drive the engine with recorded sessions and say what a model would have seen",
    "doctor": "check this machine and say what to do about each finding",
}
"""`{name: one-line summary}`. A command NAME lives in foredeck.cli.NAME_command as COMMAND."""


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
    command = import_module(f"foredeck.cli.{name}_command").COMMAND
    assert isinstance(command, Command)
    return command

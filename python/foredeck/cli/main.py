"""The `foredeck` command: runs a command, and turns errors into exit codes."""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, NoReturn

from foredeck.cli.output import filled, print_error, print_long, shown, typed
from foredeck.cli.registry import COMMANDS, GROUPS, Command, load
from foredeck.errors import ForedeckError, NotFound
from foredeck.home import command_name
from foredeck.version import __version__

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

EXIT_CODES = {
    0: "success",
    1: "failure, or something was found or is left to do (doctor, replay, purge, restore)",
    2: "wrong usage, or an invalid configuration",
    3: "the store could not be opened, or failed",
    4: "no such file, session, object, version, task or memory entry",
    5: "import refused",
    130: "interrupted (Ctrl-C)",
}

_DESCRIPTION = """\
foredeck decides, before every model call of the Pi coding agent, what the model sees.
This command shows what it has stored, and looks after it."""

_FIRST_STEPS = """\
Nothing is stored yet. Pi's sessions are, from the next one that has foredeck.
`foredeck ingest` reads the sessions that Pi, Claude Code and Codex have kept;
`foredeck cost --histories` says what foredeck would have saved in them.

`foredeck --help` lists all commands.
"""


IN_PI = {"compact", "fold", "observe", "off", "on", "open", "pin"} | {
    *("private", "rewind", "setup", "uncompact", "unpin", "why")
}
"""Verbs of `/foredeck` that are no command here."""

_ALONE = ("-h", "--help", "--version")
"""Options that need no command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit code (see EXIT_CODES)."""
    arguments = _join_name(list(sys.argv[1:] if argv is None else argv))
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    _survive_odd_streams(needs_stdout=chosen == "engine")
    # These two speak to a program over stdout.
    with nullcontext() if chosen in ("engine", "mcp") else shown():
        return _main(chosen, arguments)


def _main(chosen: str | None, arguments: list[str]) -> int:
    try:
        code = _run(chosen, arguments)
        if sys.stdout is not None:
            sys.stdout.flush()  # here, so that a full disk or a closed pipe is met by what follows
    except BrokenPipeError:
        # `foredeck show ... | head` has seen enough: no failure, and no complaint at exit.
        _discard_stdout()
        return 0
    except KeyboardInterrupt:
        print("foredeck: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        return _failed_system_call(error)
    return code


def _join_name(arguments: list[str]) -> list[str]:
    name = " ".join(arguments[:2])
    return [name, *arguments[2:]] if name in COMMANDS and " " in name else arguments


_CHOICE = re.compile(r"argument [\w-]+: invalid choice: '(.*)' \(choose from (.*)\)", re.DOTALL)


class _Parser(argparse.ArgumentParser):
    """Shows commands as they can be typed, and names the command that a mistyped one means."""

    def error(self, message: str) -> NoReturn:
        if (choice := _CHOICE.match(message)) is None:
            self.exit(2, f"{self.prog}: {message}\n`{self.prog} --help` explains it.\n")
        typed, names = choice[1], re.findall(r"[\w-]+", choice[2])
        hint = _near(typed, names) or f"there are {', '.join(names)}."
        self.exit(2, f"{self.prog}: there is no {typed!r}; {hint}\n")

    def format_help(self) -> str:
        commands = re.compile(r"(?<=`)foredeck(?= )|(?<=^  )foredeck(?= )", re.MULTILINE)
        return commands.sub(lambda _: command_name(), super().format_help())

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """See `ArgumentParser`; through the pager where it is long."""
        print_long([self.format_help()], end="") if file is None else super().print_help(file)


def build_parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """The parser for one command, or for all of them."""
    parser = _Parser(
        prog="foredeck",
        description=f"{_DESCRIPTION}\n\n{_commands()}",
        usage="foredeck [-h] [--version] COMMAND ...",
        epilog=_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"foredeck {__version__}")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", prog="foredeck", required=True, help=argparse.SUPPRESS
    )
    if chosen is not None:
        _add(commands, chosen, load(chosen))
    return parser


def _add(commands: argparse._SubParsersAction[_Parser], name: str, command: Command) -> None:
    parser = commands.add_parser(
        name,
        description=filled(command.description),
        epilog=f"example:\n  {command.example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.configure(parser)
    parser.set_defaults(run=command.run, refuse=parser.error)


def _run(chosen: str | None, arguments: list[str]) -> int:
    try:
        if chosen and arguments[0].startswith("-") and arguments[0] not in _ALONE:
            option = arguments[0].partition("=")[0]
            print_error(f"options follow the command: `foredeck COMMAND {option} ...`")
            return 2
        if chosen is not None and chosen not in COMMANDS:
            return _unknown_command(chosen)
        if not arguments:
            help_ = typed(_FIRST_STEPS) if _is_new() else build_parser().format_help()
            print_long([help_], end="")
            return 1
        parsed, others = build_parser(chosen).parse_known_args(arguments)
        if others:
            parsed.refuse(f"unrecognized arguments: {' '.join(others)}")
        code: int = parsed.run(parsed)
        return code
    except SystemExit as end:  # argparse ends this way, after --help and after a wrong usage
        return end.code if isinstance(end.code, int) else 0
    except ForedeckError as error:
        print_error(str(error))
        return error.exit_code
    except (OSError, KeyboardInterrupt):
        raise
    except Exception as error:
        return _unexpected(error)


def _is_new() -> bool:
    # Load the configuration, which help does without.
    from foredeck.cli.arguments import resolve_config
    from foredeck.store.place import store_place

    try:
        config = resolve_config(argparse.Namespace(home=None, set=[])).config
    except ForedeckError:
        return False
    return not store_place(config).exists()


def _unknown_command(name: str) -> int:
    if name == "bench":
        print_error(
            "`foredeck bench` measures and tests foredeck itself, and is not installed with it: "
            "run it in a checkout of the repository, after `scripts/setup`."
        )
        return 2
    hint = f"in Pi it is `/foredeck {name}`." if name in IN_PI else _near(name, COMMANDS)
    hint = hint or "`foredeck --help` lists the commands."
    print(f"foredeck: there is no command {name!r}; {hint}", file=sys.stderr)
    return 2


def _near(typed: str, names: Iterable[str]) -> str:
    """Which of some names was meant, in words; may be empty."""
    # Only after a mistake.
    import difflib

    near = difflib.get_close_matches(typed, names, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else ""


def _failed_system_call(error: OSError) -> int:
    if not _print_traceback():
        place = f"{error.filename}: " if error.filename else ""
        print(f"foredeck: {place}{error.strerror or error}", file=sys.stderr)
    _discard_stdout()  # what could not be written is not tried again at exit
    return NotFound.exit_code if isinstance(error, FileNotFoundError) else 1


def _unexpected(error: Exception) -> int:
    if not _print_traceback():
        print(
            f"foredeck: internal error: {type(error).__name__}: {error}\n"
            "Run it again with FOREDECK_DEBUG=1 for the traceback, and please report it.",
            file=sys.stderr,
        )
    return 1


def _print_traceback() -> bool:
    if not os.environ.get("FOREDECK_DEBUG"):
        return False
    # Only after a mistake.
    import traceback

    traceback.print_exc()
    return True


def _discard_stdout() -> None:
    # The descriptor, not the object: Python flushes what is buffered at exit, and would fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _survive_odd_streams(*, needs_stdout: bool) -> None:
    """Lets a closed stdout swallow output unless it is needed, and escapes characters that the
    encoding lacks."""
    # Python sets `sys.stdout` to None where descriptor 1 is closed, as under some service managers.
    if sys.stdout is None and not needs_stdout:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115  (to the end of the process)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _commands() -> str:
    width = max(len(name) for group in GROUPS.values() for name in group)
    parts = []
    for heading, group in GROUPS.items():
        lines = [f"  {name:<{width}}  {listed.summary}" for name, listed in group.items()]
        parts.append("\n".join([f"{heading}:", *lines]))
    if "bench" in COMMANDS:
        names = [name.removeprefix("bench ") for name in COMMANDS if name.startswith("bench ")]
        listed = textwrap.fill(
            f"bench, and bench with one of: {', '.join(names)}",
            width=80,
            initial_indent="  ",
            subsequent_indent="  ",
        )
        parts.append(f"Measure and test foredeck itself (in a checkout):\n{listed}")
    return "\n\n".join(parts)


def _epilog() -> str:
    codes = "\n".join(f"  {code:<4} {meaning}" for code, meaning in EXIT_CODES.items())
    return (
        f"exit codes:\n{codes}\n\nexample:\n  foredeck doctor\n\n"
        "`foredeck COMMAND --help` explains a command and gives an example."
    )


if __name__ == "__main__":
    sys.exit(main())

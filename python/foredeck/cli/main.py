"""The `foredeck` command: finds the command, runs it, turns what it raises into an exit code."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from contextlib import nullcontext

from foredeck import __version__
from foredeck.cli.output import shown
from foredeck.cli.registry import COMMANDS, GROUPS, Command, load
from foredeck.errors import ForedeckError
from foredeck.home import command_name

EXIT_CODES = {
    0: "success",
    1: "failure, or something was found or is left to do (doctor, replay, purge, restore)",
    2: "wrong usage, or an invalid configuration",
    3: "the store could not be opened, or failed",
    4: "no such session, object, version, task or memory entry",
    5: "import refused",
    130: "interrupted (Ctrl-C)",
}

_DESCRIPTION = """\
foredeck decides, before every model call of the Pi coding agent, what the model sees.
This command shows what it has stored, and looks after it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; gives the exit code (see EXIT_CODES)."""
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
    """A command of two words (`bench crash`) as one argument."""
    name = " ".join(arguments[:2])
    return [name, *arguments[2:]] if name in COMMANDS and " " in name else arguments


class _Parser(argparse.ArgumentParser):
    """Its help names commands as they can be typed: in the example, and in backquotes."""

    def format_help(self) -> str:
        commands = re.compile(r"(?<=`)foredeck(?= )|(?<=^  )foredeck(?= )", re.MULTILINE)
        return commands.sub(lambda _: command_name(), super().format_help())


def build_parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """The parser for one command; without one, for what can be typed without a command."""
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
        description=_filled(command.description),
        epilog=f"example:\n  {command.example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.configure(parser)
    parser.set_defaults(run=command.run)


def _filled(text: str) -> str:
    """Paragraphs in lines of the terminal's width."""
    width = min(shutil.get_terminal_size().columns - 2, 90)
    return "\n\n".join(textwrap.fill(" ".join(p.split()), width) for p in text.split("\n\n"))


def _run(chosen: str | None, arguments: list[str]) -> int:
    try:
        if chosen is not None and chosen not in COMMANDS:
            return _unknown_command(chosen)
        if not arguments:
            build_parser().print_help()
            return 1
        parsed = build_parser(chosen).parse_args(arguments)
        code: int = parsed.run(parsed)
        return code
    except SystemExit as end:  # argparse ends this way, after --help and after a wrong usage
        return end.code if isinstance(end.code, int) else 0
    except ForedeckError as error:
        print(f"foredeck: {error}", file=sys.stderr)
        return error.exit_code
    except (OSError, KeyboardInterrupt):
        raise
    except Exception as error:
        return _unexpected(error)


def _unknown_command(name: str) -> int:
    # Only after a mistake.
    import difflib

    if name == "bench":
        print(
            "foredeck: `foredeck bench` measures and tests foredeck itself, and is not installed "
            "with it: run it in a checkout of the repository, after `scripts/setup`.",
            file=sys.stderr,
        )
        return 2
    near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else "`foredeck --help` lists the commands."
    print(f"foredeck: there is no command {name!r}; {hint}", file=sys.stderr)
    return 2


def _failed_system_call(error: OSError) -> int:
    """A full disk behind stdout, a folder that may not be read: the system's words say it."""
    if not _print_traceback():
        place = f"{error.filename}: " if error.filename else ""
        print(f"foredeck: {place}{error.strerror or error}", file=sys.stderr)
    _discard_stdout()  # what could not be written is not tried again at exit
    return 1


def _unexpected(error: Exception) -> int:
    if not _print_traceback():
        print(
            f"foredeck: internal error: {type(error).__name__}: {error}\n"
            "Run it again with FOREDECK_DEBUG=1 for the traceback, and please report it.",
            file=sys.stderr,
        )
    return 1


def _print_traceback() -> bool:
    """Print the traceback if the user wants it; gives whether."""
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
    """A closed stdout swallows what is printed, unless it is needed; and characters that the
    terminal's encoding lacks are escaped instead of ending the command."""
    # Python sets `sys.stdout` to None where descriptor 1 is closed, as under some service managers.
    if sys.stdout is None and not needs_stdout:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115  (to the end of the process)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _commands() -> str:
    """The commands with their summaries, by group; those for builders apart."""
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

"""The arguments of each command and its help, quick to import."""

from __future__ import annotations

import re
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace, _MutuallyExclusiveGroup
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from foredeck.cli.registry import Command, later
from foredeck.errors import ConfigError

if TYPE_CHECKING:
    from foredeck.config import Resolved


def positive(text: str) -> int:
    """An argument's type: a whole number from 1 on."""
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


def port_number(text: str) -> int:
    """An argument's type: a port."""
    if not (text.isascii() and text.isdecimal() and int(text) < 65_536):
        raise ArgumentTypeError(f"must be a port, 0 to 65535, not {text!r}")
    return int(text)


def arguments(text: str, **details: Mapping[str, Any]) -> Callable[[ArgumentParser], None]:
    """Gives a parser the arguments of a text, one a line, with two spaces before what it means.

    `A`, `[A]`, `A...`, `[A...]` go by their place; `--all` is a switch, `--at WHEN` an option,
    `--by a|b` one of these values, `--set K=V...` repeatable; `|` excludes the one before; `old:
    [A]` has another name in commands.

    `details`: what else `add_argument` is given, by name.
    """

    def configure(parser: ArgumentParser) -> None:
        entries: list[tuple[str, list[str]]] = []
        for line in text.splitlines():
            begin, gap, rest = line.strip().partition("  ")
            if gap:
                entries.append((begin, [rest]))
            elif begin:
                entries[-1][1].append(begin)
        place: ArgumentParser | _MutuallyExclusiveGroup = parser
        names = set()
        for (typed, meaning), (following, _) in pairwise([*entries, ("", [])]):
            if not typed.startswith("| "):
                is_followed = following.startswith("| ")
                place = parser.add_mutually_exclusive_group() if is_followed else parser
            typed = typed.removeprefix("| ")
            names.add(_add_argument(place, typed, " ".join(meaning), details))
        assert details.keys() <= names, details

    return configure


_TYPED = re.compile(r"(?:(\w+): )?(--\S+)? ?(\[)?(.*?)(\.\.\.)?(?(3)\])")


def _add_argument(
    place: ArgumentParser | _MutuallyExclusiveGroup,
    typed: str,
    meaning: str,
    details: Mapping[str, Mapping[str, Any]],
) -> str:
    parts = _TYPED.fullmatch(typed)
    assert parts is not None
    name, option, is_optional, value, is_repeated = parts.groups()
    name = name or re.findall(r"\w+", typed.replace("-", "_").lstrip("_"))[0].lower()
    more = dict(details.get(name, {}), help=meaning)
    if not value:
        more["action"] = "store_true"
    elif option and "|" in value:
        more["choices"] = [more.get("type", str)(choice) for choice in value.split("|")]
    else:
        more.setdefault("metavar", value)
    if is_optional:
        more["nargs"] = "*" if is_repeated else "?"
    elif is_repeated and option:
        more |= {"action": "append", "default": []}
    elif is_repeated:
        more["nargs"] = "+"
    if option:
        place.add_argument(option, dest=name, **more)
    else:
        place.add_argument(name, **more)
    return cast("str", name)


# What several commands share


JSON = """
    --json  print JSON, for programs
    """
CONFIG = """
    --home DIR  state folder, instead of FOREDECK_HOME or the platform's own
    --set KEY=VALUE...  a setting for this run, which overrides all others; may be repeated
    """
"""The topmost layer of the configuration."""

USUAL = JSON + CONFIG
"""Those that nearly every command takes."""

PROJECT = """
    --project DIR  the project's folder (default: the current one)
    --trusted  read the project's .pi/foredeck.toml, as in a project that Pi trusts
    """

SESSION_OR_FILE = (
    "a session's id or its start, or a session file of Pi, Claude Code or Codex, which is replayed"
)

CHOSEN = "default: you choose from a list"
OR_CHOSEN = f"{SESSION_OR_FILE} ({CHOSEN})"
SESSION = f"a session's id or its start ({CHOSEN})"

NUMBER = {"type": positive}
PATH = {"type": Path}


def command(
    description: str,
    *,
    example: str,
    options: str = "",
    common: str = USUAL,
    run: str,
    **details: Mapping[str, Any],
) -> Command:
    """A command with these `arguments`, and `common` ones; `run`: a module, or one of its functions
    as `module:function`."""
    return Command(description, example, arguments(options + common, **details), later(run))


add_json_flag = arguments(JSON)


def add_flags_of_actions(parser: ArgumentParser, *, is_action: bool) -> None:
    """Adds flags that can be given before a command's action and after it."""
    project = "--project DIR  a folder of the project (default: the current one)"
    arguments(f"{JSON}\n{project}{CONFIG}", project=PATH)(parser)
    if is_action:
        # What was given before the action must not be undone by a default behind it.
        for action in parser._actions:
            if action.dest in ("json", "project", "home", "set"):
                action.default = SUPPRESS


def config_flags(args: Namespace) -> list[str]:
    home = [f"home={args.home}"] if args.home else []
    return [*args.set, *home]


def asked_folder(args: Namespace) -> Path:
    return (getattr(args, "project", None) or Path.cwd()).absolute()


def check_project(args: Namespace) -> None:
    """Refuses a mistyped project folder."""
    if not (folder := asked_folder(args)).is_dir():
        raise ConfigError(f"--project {folder}: no such folder")


def resolve_config(args: Namespace) -> Resolved:
    """The configuration of this command line; raises ConfigError."""
    # Not at the top: `--help` and errors of usage do without the configuration.
    from foredeck.config import load_config

    return load_config(
        project=asked_folder(args),
        trusted=getattr(args, "trusted", False),
        flags=config_flags(args),
    )


# Points in time, as a user types them


EXAMPLES = "2026-03-01, 2026-03-01T14:00:00+01:00, 14:30, 2h ago, yesterday"

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(
    r"(?P<count>\d{1,6})\s*(?P<unit>s|m|h|d|w)(?:ec|econd|in|inute|our|r|ay|eek)?s?(?:\s+ago)?"
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_CLOCK = re.compile(r"\d\d:\d\d(?::\d\d)?")


def parse_moment(text: str, now: datetime | None = None) -> int | None:
    """Milliseconds since 1970 of a point in time, or None.

    A day or a second means its end; a time without a zone is local.
    """
    here = now or datetime.now().astimezone()
    words = " ".join(text.lower().split())
    moment = _relative(words, here) or _absolute(text.strip(), here)
    return None if moment is None else int(moment.timestamp() * 1000)


def _relative(text: str, now: datetime) -> datetime | None:
    if text in ("now", "today"):
        return now
    if text == "yesterday":
        return now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(microseconds=1)
    ago = _AGO.fullmatch(text)
    if ago is None:
        return None
    try:
        return now - timedelta(**{_UNITS[ago["unit"]]: int(ago["count"])})
    except OverflowError:
        return None


def _absolute(text: str, now: datetime) -> datetime | None:
    if _CLOCK.fullmatch(text):
        text = f"{now:%Y-%m-%d} {text}"
    try:
        moment = datetime.fromisoformat(text)
        # The end of what was typed, so that everything listed with that time is included.
        if _DAY.fullmatch(text):
            moment += timedelta(days=1, microseconds=-1)
        elif moment.microsecond == 0:
            moment += timedelta(seconds=1, microseconds=-1)
        return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    except (ValueError, OverflowError):
        return None

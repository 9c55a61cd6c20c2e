"""The arguments of each command and its help: all that `--help` needs, and quick to import.

Here: those that several commands share, and how they are read.
"""

from __future__ import annotations

import re
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foredeck.config import Resolved


def add_json_flag(parser: ArgumentParser) -> None:
    """`--json`: output for programs."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def add_config_flags(parser: ArgumentParser) -> None:
    """`--home` and `--set`: the topmost layer of the configuration."""
    parser.add_argument(
        "--home", metavar="DIR", help="state folder, instead of FOREDECK_HOME or the platform's own"
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="set a configuration key for this run, overriding all other places; may be repeated",
    )


def add_usual_flags(parser: ArgumentParser) -> None:
    """Those that nearly every command takes: `--json`, `--home` and `--set`."""
    add_json_flag(parser)
    add_config_flags(parser)


def add_project_flags(parser: ArgumentParser) -> None:
    """`--project` and `--trusted`: whether and where a project's own file is read."""
    parser.add_argument(
        "--project",
        metavar="DIR",
        type=Path,
        default=None,
        help="the project's folder (default: the current one)",
    )
    parser.add_argument(
        "--trusted",
        action="store_true",
        help="read the project's .pi/foredeck.toml, as in a project that Pi trusts",
    )


def add_flags_of_actions(parser: ArgumentParser, *, is_action: bool) -> None:
    """`--json`, `--project` and those of the configuration, for a command about a project that has
    actions: they can be given before the action and after it."""
    add_json_flag(parser)
    parser.add_argument(
        "--project",
        metavar="DIR",
        type=Path,
        default=None,
        help="a folder of the project (default: the current one)",
    )
    add_config_flags(parser)
    if is_action:
        # What was given before the action must not be undone by a default behind it.
        for action in parser._actions:
            if action.dest in ("json", "project", "home", "set"):
                action.default = SUPPRESS


def add_object(parser: ArgumentParser, *, parts: bool = False) -> None:
    """OBJECT and `--session`: which object a command is about (`foredeck.names`).
    `parts`: it may be followed by which part of it, in words of their own."""
    behind = (
        "; after it, which part: ::FIELD (::args.command), turns A-B or message N of a chat, "
        "chars A-B, at HASH"
    )
    parser.add_argument(
        "object",
        metavar="OBJECT",
        nargs="+" if parts else None,
        help="a path (absolute, relative to the current folder, or the end of one), a nickname, "
        "an id or the start of one, a task (t-k3f9), an entry of memory (m-k3f9), or SESSION:@12"
        + behind
        * parts,
    )
    parser.add_argument(
        "--session",
        metavar="SESSION",
        help="the session that handles (@12) and versions (v2) refer to",
    )


def add_objects(
    parser: ArgumentParser, *, several: bool = False, is_optional: bool = False
) -> None:
    """OBJECT, of which there may be several or none, and `--session`."""
    parser.add_argument(
        "object",
        metavar="OBJECT",
        nargs="+" if several else "?" if is_optional else None,
        help="a path, a note's title, a nickname, an id or the start of one, or SESSION:@12; "
        "also in [[ ]]",
    )
    parser.add_argument(
        "--session", metavar="SESSION", help="the session whose handles (@12) are meant"
    )


def add_selection(parser: ArgumentParser) -> None:
    """`--type` and `--relation`: which references to follow."""
    parser.add_argument(
        "--type",
        metavar="TYPE",
        action="append",
        default=[],
        help="only objects of this type (`file`, `toolcall` ...); may be repeated",
    )
    parser.add_argument(
        "--relation",
        metavar="NAME",
        action="append",
        default=[],
        help="only references of this relation (`mentions`, `embeds`, `parent` ...); may be "
        "repeated",
    )


def add_session(parser: ArgumentParser, *, optional: bool = False) -> None:
    """SESSION|FILE."""
    parser.add_argument(
        "session",
        metavar="SESSION|FILE",
        nargs="?" if optional else None,
        help="a stored session: its id, the start of one, or its name; or a session file of Pi, "
        "Claude Code or Codex. A session that foredeck did not record is replayed",
    )


def config_flags(args: Namespace) -> list[str]:
    """The KEY=VALUE settings that `--home` and `--set` ask for."""
    home = [f"home={args.home}"] if args.home else []
    return [*args.set, *home]


def asked_folder(args: Namespace) -> Path:
    """The folder of `--project`, else the current one."""
    return (getattr(args, "project", None) or Path.cwd()).absolute()


def resolve_config(args: Namespace) -> Resolved:
    """The configuration as this command line sees it; raises ConfigError."""
    # Not at the top: `--help` and errors of usage do without the configuration.
    from foredeck.config import load_config

    return load_config(
        project=asked_folder(args),
        trusted=getattr(args, "trusted", False),
        flags=config_flags(args),
    )


def positive(text: str) -> int:
    """An argument's type: a whole number from 1 on."""
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


# Points in time, as a user types them


EXAMPLES = "2026-03-01, 2026-03-01T14:00:00+01:00, 14:30, 2h ago, yesterday"

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(
    r"(?P<count>\d{1,6})\s*(?P<unit>s|m|h|d|w)(?:ec|econd|in|inute|our|r|ay|eek)?s?(?:\s+ago)?"
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_CLOCK = re.compile(r"\d\d:\d\d(?::\d\d)?")


def parse_moment(text: str, now: datetime | None = None) -> int | None:
    """Milliseconds since 1970 of a point in time, None for what is none.

    A day or a second means its end; a time without a zone is local. `now`: with a zone; the
    clock's by default.
    """
    here = now or datetime.now().astimezone()
    said = " ".join(text.lower().split())
    moment = _relative(said, here) or _absolute(text.strip(), here)
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

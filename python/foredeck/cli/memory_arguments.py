"""The arguments of `foredeck memory` and its actions."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable


def _list(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="SESSION", help="only what belongs to this session")
    which.add_argument(
        "--proposed", action="store_true", help="only what you have not accepted or refused yet"
    )
    which.add_argument(
        "--all",
        action="store_true",
        help="everything, including entries that were removed, and why",
    )
    parser.add_argument("--tag", metavar="T", help="only entries with this tag")


def _entry(parser: ArgumentParser) -> None:
    parser.add_argument(
        "entry", metavar="ENTRY", help="its key (m-k3f9), the start of it, or its id"
    )


def _entries(parser: ArgumentParser) -> None:
    parser.add_argument(
        "entry", metavar="ENTRY", nargs="+", help="their keys (m-k3f9), the starts of them, or ids"
    )


def _add(parser: ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="what to remember, in one line")
    parser.add_argument(
        "--category",
        choices=("preference", "decision", "fact", "context", "finding"),
        default="preference",
        help="a preference applies everywhere, a decision to this project, the others to a "
        "session (default: %(default)s)",
    )
    parser.add_argument("--session", metavar="SESSION", help="the session that it belongs to")
    parser.add_argument(
        "--everywhere", action="store_true", help="a decision that applies to all projects"
    )
    parser.add_argument(
        "--ground",
        metavar="FILE",
        action="append",
        default=[],
        help="a file that it is based on, or git:COMMIT: once that changes, the entry is left out "
        "of prompts until you confirm it; may be repeated",
    )
    parser.add_argument("--native", metavar="TEXT", help="the text in your own language")


def _edit(parser: ArgumentParser) -> None:
    _entry(parser)
    parser.add_argument("text", metavar="TEXT", nargs="?", help="its new text")
    parser.add_argument("--native", metavar="TEXT", help="the text in your own language")
    parser.add_argument(
        "--category",
        choices=("preference", "decision", "fact", "context"),
        help="its new category; `pin` and `demote` move an entry",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--everywhere", action="store_true", help="it applies to all projects")
    where.add_argument("--here", action="store_true", help="it applies to this project only")


def _accept(parser: ArgumentParser) -> None:
    _entries(parser)
    parser.add_argument("--text", metavar="TEXT", help="a new text for it")


def _pin(parser: ArgumentParser) -> None:
    _entry(parser)
    parser.add_argument(
        "--category",
        choices=("preference", "decision"),
        help="its category; if it is not given, you are asked",
    )
    parser.add_argument(
        "--everywhere", action="store_true", help="a decision that applies to all projects"
    )


def _demote(parser: ArgumentParser) -> None:
    _entry(parser)
    parser.add_argument(
        "--session",
        metavar="SESSION",
        help="the session that it belongs to (default: the one it was learned in)",
    )


def _delete(parser: ArgumentParser) -> None:
    _entries(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


OF_ACTIONS: dict[str, Callable[[ArgumentParser], None]] = {
    "list": _list,
    "show": _entry,
    "add": _add,
    "edit": _edit,
    "accept": _accept,
    "refuse": _entries,
    "pin": _pin,
    "demote": _demote,
    "confirm": _entry,
    "delete": _delete,
    "audit": _entry,
}

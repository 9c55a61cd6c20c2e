"""The arguments of `foredeck memory` and its actions."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable


def _list(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="SESSION", help="what is kept with this session")
    which.add_argument("--proposed", action="store_true", help="only what waits for your word")
    which.add_argument(
        "--all", action="store_true", help="all of yours, also what has left memory, and why"
    )
    parser.add_argument("--tag", metavar="T", help="only entries with this tag")


def _entry(parser: ArgumentParser) -> None:
    parser.add_argument(
        "entry", metavar="ENTRY", help="its name (m-k3f9), the start of it, or its id"
    )


def _entries(parser: ArgumentParser) -> None:
    parser.add_argument(
        "entry", metavar="ENTRY", nargs="+", help="names (m-k3f9), their starts, or ids"
    )


def _add(parser: ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="what to remember, in one line")
    parser.add_argument(
        "--category",
        choices=("preference", "decision", "fact", "context", "finding"),
        default="preference",
        help="a preference holds everywhere and a decision in this project; the others belong to "
        "a session (default: %(default)s)",
    )
    parser.add_argument("--session", metavar="SESSION", help="the session that it belongs to")
    parser.add_argument("--everywhere", action="store_true", help="a decision for all projects")
    parser.add_argument(
        "--ground",
        metavar="FILE",
        action="append",
        default=[],
        help="a file that it rests on, or git:COMMIT: once that changes, the entry is left out of "
        "prompts until you confirm it; may be repeated",
    )
    parser.add_argument("--native", metavar="TEXT", help="the same in your own language")


def _edit(parser: ArgumentParser) -> None:
    _entry(parser)
    parser.add_argument("text", metavar="TEXT", nargs="?", help="what it is to say")
    parser.add_argument("--native", metavar="TEXT", help="the same in your own language")
    parser.add_argument(
        "--category",
        choices=("preference", "decision", "fact", "context"),
        help="what it is; `pin` and `demote` move an entry",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--everywhere", action="store_true", help="it holds in all projects")
    where.add_argument("--here", action="store_true", help="it holds in this project alone")


def _accept(parser: ArgumentParser) -> None:
    _entries(parser)
    parser.add_argument("--text", metavar="TEXT", help="what it is to say instead")


def _pin(parser: ArgumentParser) -> None:
    _entry(parser)
    parser.add_argument(
        "--category",
        choices=("preference", "decision"),
        help="what it is; asked for in a terminal where it is not said",
    )
    parser.add_argument("--everywhere", action="store_true", help="a decision for all projects")


def _demote(parser: ArgumentParser) -> None:
    _entry(parser)
    parser.add_argument(
        "--session",
        metavar="SESSION",
        help="the session that it belongs to (default: the one it was learned in)",
    )


def _delete(parser: ArgumentParser) -> None:
    _entries(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")


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

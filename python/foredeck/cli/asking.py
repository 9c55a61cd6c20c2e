"""Questions to the user at a terminal: a confirmation, a word, one of the stored sessions.

They go to stderr: what a command prints may be read by a program.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable

from foredeck.cli.output import fitted_table
from foredeck.cli.stored import opened_store
from foredeck.errors import CommandRefused, NotFound
from foredeck.lookup.sessions import latest_sessions
from foredeck.model.figures import when
from foredeck.model.quoting import printable

_MOST = 10
_WITHOUT = "which session? Give its id or the start of it: `foredeck sessions` lists them."


def can_ask() -> bool:
    """Whether somebody sits at a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def asked(question: str) -> str:
    """What the user types; nothing where they end the input."""
    print(f"{question} ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def is_agreed(question: str) -> bool:
    """Whether the user says yes."""
    return asked(f"{question} [y/N]").lower() in ("y", "yes")


def confirm(
    question: str, *, nothing: str, yes: bool = False, show: Callable[[], object] = lambda: None
) -> None:
    """Asks the user, unless `--yes` was given; raises `CommandRefused`.

    `nothing`: what has not happened, such as "nothing was deleted".
    """
    if yes:
        return
    if not can_ask():
        raise CommandRefused(f"{nothing}: confirm with --yes")
    show()
    if not is_agreed(question):
        raise CommandRefused(nothing)


def named_or_chosen(args: Namespace, name: str | None) -> str:
    """The session's name as it was given, else what the user chooses among the latest.

    Raises `CommandRefused` where there is nobody to ask.
    """
    if name is not None:
        return name
    if not can_ask():
        raise CommandRefused(_WITHOUT)
    with opened_store(args) as store:
        sessions = latest_sessions(store)[:_MOST]
    if not sessions:
        raise NotFound("no session is stored here.")
    rows = [
        (f"{number:>2}", each.short_id, when(each.last_ms)[:16], each.project_name, each.title)
        for number, each in enumerate(sessions, 1)
    ]
    print(fitted_table([tuple(map(printable, row)) for row in rows]), file=sys.stderr)
    typed = asked("Which session? Its number, or the start of another id:")
    if not typed:
        raise CommandRefused("no session was chosen.")
    is_number = typed.isdecimal() and 1 <= int(typed) <= len(sessions)
    return sessions[int(typed) - 1].id if is_number else typed

"""The person at the terminal: whether one asks, what they answer, choose and type.

Whether a person has asked stops what a model does on its own or is fooled into, not a program that
sets out to get around it (docs/security.md). Questions go to stderr: what a command prints may be
read by a program.
"""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

from foredeck.cli.output import fitted_table
from foredeck.cli.stored import opened_store
from foredeck.errors import CommandRefused, NotFound
from foredeck.lookup.sessions import latest_sessions
from foredeck.model.figures import when
from foredeck.model.quoting import printable
from foredeck.store.at_work import engines_at_work

OF_AN_AGENT = "FOREDECK_SESSION"
"""Set by the Pi extension for everything that its session starts."""


def agent_above(home: Path) -> str | None:
    """The session whose agent has started this process, perhaps empty; None without an agent."""
    # A command drops a variable with ease, or names another session in it, but has Pi among its
    # ancestors all the same.
    hosts = {engine.host: engine.session for engine in engines_at_work(home) if engine.host}
    above = list(_ancestors())
    for pid in above:
        if pid in hosts:
            return hosts[pid] or ""
    values = (os.environ.get(OF_AN_AGENT) or None, *(_given(pid, OF_AN_AGENT) for pid in above))
    return next((session for session in values if session is not None), None)


def check_person(home: Path, what: str) -> None:
    """Raises `CommandRefused` if an agent asks, or may be asking, for what only a person may do."""
    if agent_above(home) is not None:
        raise CommandRefused(
            f"This runs inside an agent's session. {what} is for you only: "
            "do it in a terminal of your own."
        )
    if engines_at_work(home) and not has_terminal():
        raise CommandRefused(
            f"An agent is at work, and this command has no terminal, so it could be one of "
            f"the agent's. {what} is for you only: do it in a terminal, or close Pi first."
        )


def has_terminal() -> bool:
    """Whether this process runs in a terminal's foreground."""
    if sys.platform == "win32":
        return sys.stdin.isatty()
    try:
        # Not stdin, which a pipe may feed. A process that was detached has no /dev/tty.
        descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _ancestors() -> Iterator[int]:
    # macOS has no /proc.
    parents = _parents_by_ps() if sys.platform == "darwin" else None
    pid, pids = os.getppid(), set[int]()
    while pid > 0 and pid not in pids:  # a container's first process may be Pi
        pids.add(pid)
        yield pid
        pid = _parent(pid) if parents is None else parents.get(pid, 0)


def _parent(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        # After the name, which is in brackets and may hold any character.
        return int(status.rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _parents_by_ps() -> dict[int, int]:
    try:
        listed = subprocess.run(
            ["/bin/ps", "-axo", "pid=,ppid="], capture_output=True, text=True, timeout=5
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    pairs = (line.split() for line in listed.splitlines())
    return {int(pair[0]): int(pair[1]) for pair in pairs if len(pair) == 2}


def _given(pid: int, name: str) -> str | None:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    start = f"{name}=".encode()
    entries = (entry for entry in environment.split(b"\0") if entry.startswith(start))
    value = next(entries, None)
    return None if value is None else value.removeprefix(start).decode(errors="replace")


# Questions


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


def check_can_confirm(nothing: str) -> None:
    """Raises `CommandRefused` where nobody sits at a terminal, before any work is done for them."""
    if not can_ask():
        raise CommandRefused(f"{nothing}: confirm with --yes")


def confirm(
    question: str, *, nothing: str, yes: bool = False, show: Callable[[], object] = lambda: None
) -> None:
    """Asks the user, unless `--yes` was given; raises `CommandRefused`.

    `nothing`: what has not happened, such as "nothing was deleted".
    """
    if yes:
        return
    check_can_confirm(nothing)
    show()
    if not is_agreed(question):
        raise CommandRefused(nothing)


def named_or_chosen(args: Namespace, name: str | None) -> str:
    """The session's name as it was given, else what the user chooses among the latest.

    Raises `CommandRefused` where there is nobody to ask.
    """
    if name is not None:
        return name
    with opened_store(args) as store:
        if not can_ask():
            raise CommandRefused(_WITHOUT)
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


# Texts


STANDARD = "-"
"""Means stdout or stdin."""


def given_text(argument: str) -> str:
    """A text given as an argument; for `-` from stdin."""
    return sys.stdin.read() if argument == STANDARD else argument

"""Whether a person has asked for a command, and not an agent.

An agent's commands run as its user, so nothing here stops a program that sets out to get around it
(docs/security.md says what does not). It stops what a model does on its own, or is fooled into:
dropping a variable, `--yes`, or a process of its own in the background.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from foredeck.errors import CommandRefused
from foredeck.store.at_work import engines_at_work

OF_AN_AGENT = "FOREDECK_SESSION"
"""Set by the Pi extension for all that its session starts."""


def agent_above(home: Path) -> str | None:
    """The session whose agent has started this process, empty where it cannot be named; None where
    no agent has, as far as its ancestors tell."""
    # A command drops a variable with ease, or names another session in it, but has Pi among its
    # ancestors all the same.
    hosts = {engine.host: engine.session for engine in engines_at_work(home) if engine.host}
    above = list(_ancestors())
    for pid in above:
        if pid in hosts:
            return hosts[pid] or ""
    given = (os.environ.get(OF_AN_AGENT) or None, *(_given(pid, OF_AN_AGENT) for pid in above))
    return next((session for session in given if session is not None), None)


def check_person(home: Path, what: str) -> None:
    """Raise `CommandRefused` where an agent asks for what only a person may do, or may be asking:
    while one is at work, a command without a terminal could be a process that it has detached.

    `what`: as in "what can only be done by yourself", such as "Erasing".
    """
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


def confirm(
    question: str, *, nothing: str, yes: bool = False, show: Callable[[], object] = lambda: None
) -> None:
    """Ask the user, unless they have said `--yes`; `show` prints first what it is about.

    Raises `CommandRefused`; `nothing`: what has not happened, as in "nothing was deleted".
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandRefused(f"{nothing}: confirm with --yes")
    show()
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise CommandRefused(nothing)


def has_terminal() -> bool:
    """Whether this process has a terminal and runs in its foreground, as what a person has typed
    there does."""
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
    """The processes above this one, the nearest first; none where the system does not say."""
    # macOS has no /proc.
    parents = _parents_by_ps() if sys.platform == "darwin" else None
    pid, seen = os.getppid(), set[int]()
    while pid > 0 and pid not in seen:  # a container's first process may be Pi
        seen.add(pid)
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
    """A variable that a process was started with; None if it was not, or may not be read."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    start = f"{name}=".encode()
    found = (entry for entry in environment.split(b"\0") if entry.startswith(start))
    value = next(found, None)
    return None if value is None else value.removeprefix(start).decode(errors="replace")

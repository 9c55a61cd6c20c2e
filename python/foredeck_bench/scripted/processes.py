"""Looking at other processes: who descends from whom, and what is left of a run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A running process as `ps` shows it."""

    pid: int
    parent: int
    command: str


def running() -> list[Process]:
    """All processes that are running, zombies left out."""
    listing = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,command="],
        capture_output=True,
        text=True,
        errors="replace",
        check=True,
    )
    found = []
    for line in listing.stdout.split("\n"):
        fields = line.split(maxsplit=3)
        if len(fields) == 4 and not fields[2].startswith("Z"):
            found.append(Process(int(fields[0]), int(fields[1]), fields[3]))
    return found


def descendants(pid: int) -> list[Process]:
    """Children of `pid`, their children and so on, parents before children."""
    processes = running()
    found: list[Process] = []
    parents = {pid}
    while parents:
        children = [p for p in processes if p.parent in parents]
        found += children
        parents = {p.pid for p in children}
    return found


def with_environment(name: str, value: str) -> list[Process]:
    """Processes of this user whose environment holds `name=value`, whoever their parent is now.

    Needs `/proc`; elsewhere the list is empty.
    """
    wanted = f"{name}={value}".encode()
    return [p for p in running() if wanted in _environment(p.pid)]


def wait_for_end(pids: list[int], timeout_s: float) -> list[int]:
    """Wait until these processes have ended; returns those that have not after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        alive = {p.pid for p in running()}
        left = [pid for pid in pids if pid in alive]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def kill(pid: int) -> None:
    """SIGKILL, or nothing where the process has ended already."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []

"""Other processes: who descends from whom, and what is left of a run."""

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
    listing = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,command="],
        capture_output=True,
        text=True,
        errors="replace",
        check=True,
    )
    processes = []
    for line in listing.stdout.split("\n"):
        fields = line.split(maxsplit=3)
        if len(fields) == 4 and not fields[2].startswith("Z"):
            processes.append(Process(int(fields[0]), int(fields[1]), fields[3]))
    return processes


def descendants(pid: int) -> list[Process]:
    """Children of `pid`, their children and so on, parents before children."""
    processes = running()
    below: list[Process] = []
    parents = {pid}
    while parents:
        children = [p for p in processes if p.parent in parents]
        below += children
        parents = {p.pid for p in children}
    return below


def with_environment(name: str, value: str) -> list[Process]:
    """Processes of this user with `name=value` in their environment; needs `/proc`."""
    entry = f"{name}={value}".encode()
    return [p for p in running() if entry in _environment(p.pid)]


def wait_for_end(pids: list[int], timeout_s: float) -> list[int]:
    """Waits for processes to end; returns those that have not."""
    deadline = time.monotonic() + timeout_s
    while True:
        alive = {p.pid for p in running()}
        survivors = [pid for pid in pids if pid in alive]
        if not survivors or time.monotonic() > deadline:
            return survivors
        time.sleep(0.05)


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []

"""Processes that carry a mark in their environment, by which those that outlive a run are ended."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_POLL_S = 0.05
_GONE_S = 10.0
"""How long a killed process may take to be gone."""


@dataclass(frozen=True, slots=True)
class Process:
    """A running process."""

    pid: int
    command: str
    parent: int = 0
    """Where that is known."""


def marked(name: str, value: str) -> list[Process]:
    """Those with `name=value` in their environment; none without `/proc`."""
    entry, processes = f"{name}={value}".encode(), []
    for folder in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            if entry in (folder / "environ").read_bytes().split(b"\0"):
                words = (folder / "cmdline").read_bytes().split(b"\0")
                command = b" ".join(words).decode(errors="replace").strip()
                processes.append(Process(int(folder.name), command))
    return processes


def end_marked(name: str, value: str, patience_s: float = 0.0) -> None:
    """Ends them; what has not ended by itself by then is killed."""
    deadline = time.monotonic() + patience_s
    while survivors := marked(name, value):
        if time.monotonic() > deadline + _GONE_S:
            return
        for process in survivors if time.monotonic() > deadline else ():
            kill(process.pid)
        time.sleep(_POLL_S)


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))

"""Running commands with an end: what outlives its time, or the run, is ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from foredeck.evaluation.scratch import MARK

_GRACE_S = 3.0
"""Pi ends what it has started and stores what it has, when it is asked to end."""
_SETTLE_S = 10.0
"""So long what a run has started may take to end after it."""
_SAID_CHARS = 600


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a command. `code` is None where its time was up; `said` is the end of what it
    printed."""

    code: int | None
    said: str
    seconds: float


def run_command(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], timeout_s: float
) -> Ran:
    """Run a command until it ends or its time is up; nothing of it is left running then.

    What it prints goes through a file: a pipe would stay open as long as anything that the agent
    has put into the background.
    """
    printed = folder.parent / "printed"
    began = time.monotonic()
    with printed.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            seconds = time.monotonic() - began
            _end(process)
            _end_left(environment[MARK], _GRACE_S if process.returncode else _SETTLE_S)
    said = printed.read_text(encoding="utf-8", errors="replace").strip()
    return Ran(code, said[-_SAID_CHARS:], seconds)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    _signal(process, signal.SIGTERM)
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
        process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.terminate()


def _end_left(mark: str, patience_s: float) -> None:
    """Wait for what a run has started (the engine stores what it has), and end what does not."""
    deadline = time.monotonic() + patience_s
    while left := _marked(mark):
        if time.monotonic() > deadline:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.05)


def _marked(mark: str) -> list[int]:
    """Processes with this mark in their environment; none where there is no `/proc`."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found

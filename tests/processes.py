"""What a test has started is gone before the next one begins."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

_ENDING_S = 2.0
"""Seconds for a process that is ending: its locks, by which others know that it has ended, are free
a moment before it is gone."""
_GONE_S = 10.0
"""Seconds that killed processes get to be gone: a zombie that nobody reaps never is."""


def run_program(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """A program that has ended, with what it printed."""
    return subprocess.run(words, capture_output=True, text=True, **{"check": False, **options})


class StartedProcesses:
    """The processes that tests start, whoever's code does it."""

    def __init__(self) -> None:
        self._running: list[subprocess.Popen[Any]] = []
        start = subprocess.Popen.__init__

        def noting(process: subprocess.Popen[Any], *args: Any, **options: Any) -> None:
            start(process, *args, **options)
            self._running.append(process)

        subprocess.Popen.__init__ = noting  # type: ignore[method-assign]

    def forget(self) -> None:
        """What was started so far is for more than one test."""
        self._running.clear()

    def end(self) -> list[str]:
        """End what still runs, with what that has started; returns the commands of these."""
        started, self._running = self._running, []
        deadline = time.monotonic() + _ENDING_S
        while left := [process for process in started if process.poll() is None]:
            if time.monotonic() > deadline:
                break
            time.sleep(0.01)
        for process in left:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # where it leads a group
            process.kill()
            process.wait()
        deadline = time.monotonic() + _GONE_S
        while any(map(_has_group, left)) and time.monotonic() < deadline:
            time.sleep(0.01)
        return [str(process.args) for process in left]


def _has_group(process: subprocess.Popen[Any]) -> bool:
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


STARTED = StartedProcesses()

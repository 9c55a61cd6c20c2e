"""Detects that the host has died although its end of the pipe is still open.

That happens where another child of the host has inherited the pipe. Without this the engine would
wait for input for ever.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable

POLL_SECONDS = 2.0
GRACE_SECONDS = 30.0
"""How long the engine may take to end by itself before its process is ended."""


class ParentWatch:
    """Calls `gone` on the loop when the process that started this one has ended.

    If the process is still running GRACE_SECONDS later, because its loop is stuck, it is ended
    with exit code 1: committed work is safe in the store, and an orphan would hold the store open.
    """

    def __init__(self, gone: Callable[[], None]) -> None:
        self._gone = gone
        self._parent = os.getppid()
        self._ended = threading.Event()

    def start(self) -> None:
        """Begin to watch, on a daemon thread. Does nothing on Windows, where ids are reused."""
        if sys.platform != "win32":
            loop = asyncio.get_running_loop()
            threading.Thread(
                target=self._watch, args=(loop,), name="foredeck-parent", daemon=True
            ).start()

    def stop(self) -> None:
        """The process is about to end."""
        self._ended.set()

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        while os.getppid() == self._parent:
            if self._ended.wait(POLL_SECONDS):
                return
        try:
            loop.call_soon_threadsafe(self._gone)
        except RuntimeError:  # the loop has just ended
            return
        if not self._ended.wait(GRACE_SECONDS):
            os._exit(1)

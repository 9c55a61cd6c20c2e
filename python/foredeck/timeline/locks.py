"""One writer at a time for each path, among the engines on one state folder. A lock lasts from the
check of a write to its result."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from foredeck.regular_files import open_regular
from foredeck.store.location import is_held

WAIT_S = 0.03
"""How long a write waits for another one: its tool passes unchecked after 50 ms."""
HOLD_S = 10.0
"""A lock that is older belongs to a tool or an engine that hangs."""
_PAUSE_S = 0.001
_FOLDER = "locks"


@dataclass(slots=True)
class _Held:
    descriptor: int
    calls: set[str] = field(default_factory=set)


class PathLocks:
    """The locks that this engine holds, each for one or more of its tool calls."""

    def __init__(self, home: Path) -> None:
        self._folder = home / _FOLDER
        self._held: dict[str, _Held] = {}

    def acquire(self, object_id: str, call_id: str) -> bool:
        """Lock a file for a tool call; False where another engine's write of it is under way."""
        # Paths share 4,096 lock files, so that none has to be removed: two that share one may wait
        # for each other needlessly, for as long as one write takes.
        slot = object_id[:3]
        if (held := self._held.get(slot)) is not None:
            held.calls.add(call_id)
            return True
        if sys.platform == "win32":
            return True
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._wait_for(slot, call_id)

    def _wait_for(self, slot: str, call_id: str) -> bool:
        path, end = self._folder / slot, time.monotonic() + WAIT_S
        while True:
            descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
            if _locked(descriptor):
                os.utime(path)  # since when it is held
                self._held[slot] = _Held(descriptor, {call_id})
                return True
            age_s = time.time() - os.fstat(descriptor).st_mtime
            os.close(descriptor)
            # A tool that hangs must not keep others waiting for ever.
            if age_s > HOLD_S:
                return True
            if time.monotonic() >= end:
                return False
            time.sleep(_PAUSE_S)

    def release(self, call_id: str) -> None:
        """A tool call has ended."""
        for slot, held in list(self._held.items()):
            held.calls.discard(call_id)
            if not held.calls:
                os.close(held.descriptor)
                del self._held[slot]

    def release_all(self) -> None:
        """No tool runs."""
        for held in self._held.values():
            os.close(held.descriptor)
        self._held.clear()


def _locked(descriptor: int) -> bool:
    """Whether the lock on an open file is ours now."""
    try:
        return not is_held(descriptor)
    except OSError:  # a file system without locks
        return False

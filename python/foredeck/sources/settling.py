"""When a change counts: once the file has settled, and no program is still writing it.

Most programs save by emptying a file and writing it again, or by replacing it. A look in between
would find a state that is not meant to last and is gone a moment later.
"""

# Paths are strings here: not always UTF-8.
# ruff: noqa: PTH116, PTH120
from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from foredeck.sources.classify import Fingerprint, Look

SETTLES_S = 0.1
"""A file that has not changed for this long counts as settled."""
EMPTIED_SETTLES_S = 1.0
"""The same for a file that was emptied: whoever saves it may be slow on a busy machine."""
NEVER_SETTLES_S = 5.0
"""A file that never settles, such as a log, is read as it is after this long."""


@dataclass(slots=True)
class _Waiting:
    """A changed file: its state, since when it has had that, and when it was first seen changed."""

    state: Fingerprint | None
    since_s: float
    first_s: float


class SettlingFiles:
    """Changed files that have not settled yet. `clock`: monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}

    def is_settled(self, path: str, seen: Look, *, emptied: bool) -> bool:
        """Whether the change that `seen` shows counts now; if not, look again in a moment.

        The age of a change is that of the modification time (the folder's, if the file is gone).
        That may lie in the future: then two looks so far apart that found the same state will do.
        """
        now, need = self._clock(), EMPTIED_SETTLES_S if emptied else SETTLES_S
        waiting = self._waiting.setdefault(path, _Waiting(seen.fingerprint, now, now))
        if waiting.state != seen.fingerprint:
            waiting.state, waiting.since_s = seen.fingerprint, now
        is_old_enough = max(now - waiting.since_s, _age_s(path, seen)) >= need
        return is_old_enough or now - waiting.first_s >= NEVER_SETTLES_S

    def forget(self, path: str) -> None:
        """The newest version of the file is known, or about to be stored."""
        self._waiting.pop(path, None)


def _age_s(path: str, seen: Look) -> float:
    """Seconds since the change; negative where the file system's clock is ahead."""
    changed_ns = _left_ns(path) if seen.fingerprint is None else seen.mtime_ns
    return (time.time_ns() - changed_ns) / 1e9


def _left_ns(path: str) -> int:
    """The latest time at which a file that is gone can have been removed, in ns since 1970."""
    while True:
        folder = os.path.dirname(path)
        try:
            return os.stat(folder).st_mtime_ns
        except (OSError, ValueError):
            if folder == path:
                return 0
            path = folder

"""When a change counts: once nobody is still writing the file.

Most programs save by emptying a file and writing it again, or by putting another one in its
place. Who looks in between finds a state that nobody meant, and it is gone a moment later.
"""

# Paths are strings here: not always UTF-8.
# ruff: noqa: PTH116, PTH120
from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from foredeck.sources.classify import Fingerprint, Look

REST_S = 0.1
"""A file that was not changed for so long is taken as it is."""
EMPTY_REST_S = 1.0
"""The same for one that was emptied: what saves it may be slow, on a busy machine."""
RESTLESS_S = 5.0
"""A file that does not come to rest, as a log, is taken as it is after so long."""


@dataclass(slots=True)
class _Waiting:
    """A changed file: how it is, since when, and since when it is not as it was known."""

    state: Fingerprint | None
    since_s: float
    first_s: float


class Rest:
    """Remembers which files wait. `clock`: seconds that never step back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}

    def is_reached(self, path: str, seen: Look, *, emptied: bool) -> bool:
        """Whether a change that `seen` shows counts now; if not, look again in a moment.

        By the file's time of modification, or by that of the folder that it is gone from. Where
        clocks differ, or that time was set by hand: it was found so twice, so long apart.
        """
        now, need = self._clock(), EMPTY_REST_S if emptied else REST_S
        waiting = self._waiting.setdefault(path, _Waiting(seen.fingerprint, now, now))
        if waiting.state != seen.fingerprint:
            waiting.state, waiting.since_s = seen.fingerprint, now
        at_rest = max(now - waiting.since_s, _age_s(path, seen)) >= need
        return at_rest or now - waiting.first_s >= RESTLESS_S

    def forget(self, path: str) -> None:
        """The file is as it is known, or about to be."""
        self._waiting.pop(path, None)


def _age_s(path: str, seen: Look) -> float:
    """Seconds since the change, less than 0 where the clocks differ."""
    changed_ns = _left_ns(path) if seen.fingerprint is None else seen.mtime_ns
    return (time.time_ns() - changed_ns) / 1e9


def _left_ns(path: str) -> int:
    """When a file that is gone was taken away, at the latest: in ns since 1970."""
    while True:
        folder = os.path.dirname(path)
        try:
            return os.stat(folder).st_mtime_ns
        except (OSError, ValueError):
            if folder == path:
                return 0
            path = folder

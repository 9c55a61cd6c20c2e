"""The journal of a local copy: what waits for XTDB, and what only XTDB has."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from foredeck.xtdb.journal.file import JournalFile
from foredeck.xtdb.journal.missing import MissingVersions
from foredeck.xtdb.journal.queue import Backlog, DeliveryQueue, JournalBounds

_NO_BOUNDS = JournalBounds(0, 0)
"""Of those who add nothing."""


class Journal:
    """Both halves, on one connection. Not thread-safe: one per thread, many per file."""

    def __init__(
        self, path: Path, bounds: JournalBounds = _NO_BOUNDS, busy_timeout_ms: int = 800
    ) -> None:
        """`path`: the file of an SQLite store, which exists. Raises `StoreUnavailable`."""
        self._file = JournalFile(path, busy_timeout_ms)
        self.queue = DeliveryQueue(self._file, bounds)
        self.missing = MissingVersions(self._file)

    def renew_tokens(self) -> None:
        """See `JournalFile.renew_tokens`."""
        self._file.renew_tokens()

    def close(self) -> None:
        """Let go of the file; calling it twice is fine."""
        self._file.close()


def read_backlog(path: Path) -> Backlog:
    """What waits in the file at `path`, which need not exist."""
    if not path.is_file():
        return Backlog(0, 0, None, 0, None)
    with closing(Journal(path)) as journal:
        return journal.queue.backlog()

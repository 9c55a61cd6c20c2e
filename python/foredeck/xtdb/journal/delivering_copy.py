"""The local copy as the delivering thread sees it, and the lock of the engine that delivers."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from foredeck.errors import Missing, StoreError
from foredeck.model.kinds import kind_of
from foredeck.regular_files import open_regular
from foredeck.store.archives import Archives
from foredeck.store.protocol import Batch
from foredeck.store.sqlite.adapter import SqliteStore, open_sqlite
from foredeck.xtdb.journal.journal import Journal
from foredeck.xtdb.journal.queue import JournalBounds, JournalEntry

_BUSY_MS = 10_000
"""How long this thread waits for a busy file: longer than an engine, for no request waits for
it."""


class DeliveringCopy:
    """A connection of the thread's own. `locked`: whether this is the engine that delivers."""

    def __init__(self, file: Path, bounds: JournalBounds, busy_timeout_ms: int) -> None:
        self.locked = False
        busy_ms = max(_BUSY_MS, busy_timeout_ms)
        self._store: SqliteStore = open_sqlite(file, busy_timeout_ms=busy_ms)
        self._archives = Archives(self._store)
        self.journal = Journal(file, bounds, busy_ms)
        # A lock of the system's: it ends with its process, so no killed engine blocks the others.
        self._lock = open_regular(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT)

    def __enter__(self) -> DeliveringCopy:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)
        self.journal.close()
        self._store.close()

    def try_lock(self) -> None:
        """Become the engine that delivers, if there is none; it begins by trying again what was
        quarantined."""
        if self.locked:
            return
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        self.locked = True
        self.journal.queue.release_quarantined()

    def waiting(self) -> int:
        """How many transactions wait; 0 where the file cannot be read."""
        try:
            return self.journal.queue.backlog().entries
        except StoreError:
            return 0

    def load(self, entry: JournalEntry) -> Batch:
        """All that a transaction brought. Raises `Missing` or `Corrupt` for a damaged copy."""
        puts = []
        for id, type in entry.documents:
            document = self._store.get(id, kind_of(type), entry.origin.token)
            assert document is not None
            puts.append(document)
        blobs = self._store.blobs(entry.blobs)
        for digest in entry.blobs:
            # What was pruned since is not delivered again.
            if digest not in blobs and not self._archives.holds(digest):
                raise Missing(f"no blob {digest} in the local copy")
        return Batch(puts=puts, blobs=blobs)

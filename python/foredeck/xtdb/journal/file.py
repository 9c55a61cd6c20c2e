"""The journal's own tables, which lie in the file of the local copy.

There they commit in one transaction with the versions that they speak of. `journal` has a row for
each transaction that was committed here: it waits until XTDB has it. `missing` names the versions
known to be in XTDB and not here: what other machines wrote, until it is read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foredeck.store.sqlite.connection import immediate, translated
from foredeck.store.sqlite.schema import new_store_id

_TABLES = """
CREATE TABLE IF NOT EXISTS journal (
    number INTEGER PRIMARY KEY,
    token TEXT NOT NULL,
    state INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    queued_ms INTEGER NOT NULL,
    blobs BLOB NOT NULL,
    reason TEXT
);
DROP INDEX IF EXISTS journal_open;
CREATE INDEX IF NOT EXISTS journal_waiting ON journal (state, number, bytes, queued_ms)
    WHERE state = 0;
CREATE INDEX IF NOT EXISTS journal_refused ON journal (state, number) WHERE state = 2;
CREATE INDEX IF NOT EXISTS journal_by_token ON journal (token);
CREATE TABLE IF NOT EXISTS missing (
    id TEXT NOT NULL,
    token TEXT NOT NULL,
    type TEXT NOT NULL,
    PRIMARY KEY (id, token)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS missing_by_type ON missing (type);
CREATE INDEX IF NOT EXISTS missing_by_token ON missing (token);
"""
_LOG_PAGES = 2000
"""Half of what the store allows: so it is the delivering thread that copies the log into the file,
and no commit of the engine has to."""


class JournalFile:
    """A connection to the journal's tables. Not thread-safe: one per thread, many per file."""

    def __init__(self, path: Path, busy_timeout_ms: int) -> None:
        """`path`: the file of an SQLite store, which exists. Raises `StoreUnavailable`."""
        self.path = path
        self._busy_timeout_ms = busy_timeout_ms
        with self.translated():
            self.db = sqlite3.connect(path, timeout=busy_timeout_ms / 1000, isolation_level=None)
            # What a power loss takes from here is delivered once more, which changes nothing.
            self.db.execute("PRAGMA synchronous = normal")
            self.db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
            self.db.executescript(_TABLES)

    def renew_tokens(self) -> None:
        """Let later transactions have tokens that no store has made yet: where a state folder was
        copied, both copies would go on with the same ones."""
        with self.translated():
            self.db.execute("UPDATE meta SET value = ? WHERE key = 'store_id'", (new_store_id(),))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what the block writes, or nothing; SQLite's errors as those of the store."""
        with self.translated(), immediate(self.db):
            yield

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise SQLite's errors as `StoreUnavailable`, with the file's name."""
        with translated(self.path, self._busy_timeout_ms):
            yield

    def close(self) -> None:
        """Let go of the file; calling it twice is fine."""
        self.db.close()

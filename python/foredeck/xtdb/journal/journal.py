"""The journal of a local copy: what waits for XTDB, and what only XTDB has, which other machines
wrote.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from foredeck.model.portions import portions
from foredeck.store.protocol import Batch, Change, Token
from foredeck.store.sqlite import codec
from foredeck.store.sqlite.connection import POSITION_BITS
from foredeck.store.sqlite.reading import changes_of_others, select_in
from foredeck.xtdb.journal.queue import Backlog, DeliveryQueue, JournalBounds, JournalFile

_PAGE = 500
_TRANSACTIONS = 200
_HELD = f"""
SELECT 1 FROM document d JOIN version v ON v.document = d.number
JOIN tx t ON t.seq = v.number >> {POSITION_BITS} WHERE d.id = ? AND t.token = ?"""


class MissingVersions:
    """The versions that are known by name only, and how far XTDB's changes were read for it."""

    def __init__(self, file: JournalFile) -> None:
        self._file = file
        self._last_look: tuple[int, bool] | None = None
        """SQLite's counter of other connections' commits, and whether anything was missing then."""
        self._has_foreign = False

    # Within the transactions of the local copy

    def note_fetched(self, db: sqlite3.Connection, batch: Batch, token: Token) -> None:
        """Versions that were missing are here, as a part of the transaction that brings them."""
        db.executemany(
            "DELETE FROM missing WHERE id = ? AND token = ?",
            ((codec.id_column(document.id), token) for document in batch.puts),
        )

    # Following XTDB

    @property
    def position(self) -> Token | None:
        """The transaction up to which XTDB's changes were read; None for none."""
        with self._file.translated():
            row = self._file.db.execute(
                "SELECT value FROM meta WHERE key = 'journal_position'"
            ).fetchone()
        return None if row is None or not row[0] else Token(row[0])

    @property
    def has_followed(self) -> bool:
        """Whether XTDB's changes were ever read to their end."""
        with self._file.translated():
            row = self._file.db.execute(
                "SELECT 1 FROM meta WHERE key = 'journal_position'"
            ).fetchone()
        return row is not None

    @property
    def has_foreign(self) -> bool:
        """Whether anybody but the engines on this copy was ever seen to write."""
        if not self._has_foreign:
            with self._file.translated():
                row = self._file.db.execute(
                    "SELECT 1 FROM meta WHERE key = 'journal_foreign'"
                ).fetchone()
            self._has_foreign = row is not None
        return self._has_foreign

    def forget_position(self) -> None:
        """Let the next engine read all changes from the first, as on a new machine."""
        with self._file.translated():
            self._file.db.execute("DELETE FROM meta WHERE key = 'journal_position'")

    def follow(self, changes: Iterable[Change], position: Token | None) -> None:
        """Record changes up to `position`: those that are not here are missing."""
        self._last_look = None
        with self._file.transaction():
            # Together with the position: after a kill between them nobody would look for these.
            self._add(changes)
            self._file.db.execute(
                "INSERT INTO meta VALUES ('journal_position', ?)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (position or "",),
            )

    def add(self, changes: Iterable[Change]) -> None:
        """Record versions that a query has met; the position stays."""
        self._last_look = None
        with self._file.transaction():
            self._add(changes)

    def _add(self, changes: Iterable[Change]) -> None:
        db = self._file.db
        rows = [(codec.id_column(change.id), change.token, change.type) for change in changes]
        absent = [row for row in rows if db.execute(_HELD, row[:2]).fetchone() is None]
        db.executemany("INSERT OR IGNORE INTO missing VALUES (?, ?, ?)", absent)
        if absent:
            db.execute("INSERT OR IGNORE INTO meta VALUES ('journal_foreign', '')")

    # What is missing

    def any(self) -> bool:
        """Whether anything is missing. Every read asks this, so the answer is remembered for as
        long as no other connection commits."""
        with self._file.translated():
            version = changes_of_others(self._file.db)
            if self._last_look is None or self._last_look[0] != version:
                row = self._file.db.execute("SELECT 1 FROM missing LIMIT 1").fetchone()
                self._last_look = version, row is not None
        return self._last_look[1]

    def any_of_type(self, type: str) -> bool:
        """Whether any version of a document of this type is missing."""
        if not self.any():
            return False
        with self._file.translated():
            row = self._file.db.execute("SELECT 1 FROM missing WHERE type = ? LIMIT 1", (type,))
            return row.fetchone() is not None

    def of_documents(self, ids: Sequence[str]) -> dict[str, set[Token]]:
        """Which versions of these documents are missing, by id; those without any are left out."""
        found: dict[str, set[Token]] = {}
        if self.any():
            with self._file.translated():
                columns = [codec.id_column(id) for id in ids]
                rows = select_in(self._file.db, "SELECT id, token FROM missing", "id", columns)
                for id, token in rows:
                    found.setdefault(codec.id_text(id), set()).add(Token(token))
        return found

    def of_tokens(self, tokens: Sequence[str]) -> dict[str, set[Token]]:
        """Which versions are missing that these transactions brought, by document."""
        found: dict[str, set[Token]] = {}
        with self._file.translated():
            select = "SELECT id, token FROM missing"
            for id, token in select_in(self._file.db, select, "token", list(tokens)):
                found.setdefault(codec.id_text(id), set()).add(Token(token))
        return found

    def of_transactions(self, tokens: Sequence[Token]) -> list[str]:
        """Documents of which a version is missing that one of these transactions brought."""
        with self._file.translated():
            select = "SELECT DISTINCT id FROM missing"
            rows = select_in(self._file.db, select, "token", list(tokens))
            return [codec.id_text(id) for (id,) in rows]

    def pages_of_transactions(self) -> Iterator[list[str]]:
        """All transactions of which a version is missing, a page at a time; those of one machine
        in the order in which it made them."""
        with self._file.translated():
            # Tokens end in a number: of one machine's the longer is the later.
            rows = self._file.db.execute(
                "SELECT DISTINCT token FROM missing ORDER BY length(token), token"
            )
            tokens = [token for (token,) in rows]
        yield from portions(tokens, _TRANSACTIONS)

    def pages_of_ids(self) -> Iterator[list[str]]:
        """All documents of which a version is missing, a page at a time."""
        last: str | bytes = ""
        while True:
            with self._file.translated():
                rows = self._file.db.execute(
                    f"SELECT DISTINCT id FROM missing WHERE id > ? ORDER BY id LIMIT {_PAGE}",
                    (last,),
                ).fetchall()
            if not rows:
                return
            last = rows[-1][0]
            yield [codec.id_text(id) for (id,) in rows]


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

"""The journal's own tables, in the file of the local copy.

`journal` has a row for each transaction that was committed here, written in that very
transaction: it waits until XTDB has it. `missing` names the versions that are known to be in XTDB
and are not here: what other machines wrote, until somebody asks for it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from foredeck.errors import StoreUnavailable
from foredeck.store.clock import now_ms
from foredeck.store.protocol import Batch, Change, Origin, Token
from foredeck.store.sqlite import codec
from foredeck.store.sqlite.errors import translated
from foredeck.store.sqlite.reading import changes_of_others, select_in
from foredeck.store.sqlite.schema import POSITION_BITS, new_store_id
from foredeck.store.sqlite.transaction import immediate

_WAITING, DELIVERED, REFUSED = range(3)

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
_HELD = f"""
SELECT 1 FROM document d JOIN version v ON v.document = d.number
JOIN tx t ON t.seq = v.number >> {POSITION_BITS} WHERE d.id = ? AND t.token = ?"""
_OF_TRANSACTION = f"""
SELECT d.id, d.type FROM tx t
JOIN version v ON v.number >= t.seq << {POSITION_BITS} AND v.number < (t.seq + 1) << {POSITION_BITS}
JOIN document d ON d.number = v.document WHERE t.token = ? ORDER BY v.number"""


class JournalFull(StoreUnavailable):
    """As much waits for XTDB as may wait: nothing more is taken in."""


@dataclass(frozen=True, slots=True)
class JournalBounds:
    """How many transactions, and how many bytes of text in them, may wait for XTDB."""

    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A transaction that waits: its documents by id and type, and blobs that belong to it."""

    number: int
    origin: Origin
    documents: list[tuple[str, str]]
    blobs: list[str]


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits: transactions, bytes of text, since when (None: nothing waits); and how many
    transactions XTDB has refused, with its words for the last."""

    entries: int
    bytes: int
    oldest_ms: int | None
    refused: int
    reason: str | None


class Journal:
    """The journal of one local copy. Not thread-safe: one per thread, many per file."""

    def __init__(self, path: Path, bounds: JournalBounds, busy_timeout_ms: int = 800) -> None:
        """`path`: the file of an SQLite store, which exists. Raises `StoreUnavailable`."""
        self.path = path
        self._bounds = bounds
        self._busy_timeout_ms = busy_timeout_ms
        with self._translated():
            self._db = sqlite3.connect(path, timeout=busy_timeout_ms / 1000, isolation_level=None)
            # What is lost with the power is found again by delivering twice, which is harmless.
            self._db.execute("PRAGMA synchronous = normal")
            # Half of what the store allows: the delivering thread copies the log into the file,
            # so that no commit of the engine has to.
            self._db.execute("PRAGMA wal_autocheckpoint = 2000")
            self._db.executescript(_TABLES)
        self._seen: tuple[int, bool] | None = None
        self._held: tuple[int, int, int] | None = None
        """How much waited after the last commit here, and SQLite's word for others' changes."""
        self._has_foreign = False

    def close(self) -> None:
        """Let go of the file; calling it twice is fine."""
        self._db.close()

    def renew_tokens(self) -> None:
        """Begin new tokens, so that those of a copied state folder are never made twice."""
        with self._translated():
            self._db.execute("UPDATE meta SET value = ? WHERE key = 'store_id'", (new_store_id(),))

    # Within the transactions of the store

    def add(self, db: sqlite3.Connection, batch: Batch, token: Token) -> None:
        """Note that a transaction waits for XTDB. Raises `JournalFull`."""
        size = sum(map(len, batch.blobs.values()))
        size += sum(len(document.content or "") for document in batch.puts)
        version, entries, waiting = self._held_before(db)
        if self._is_full(entries, waiting + size):
            # What is remembered may count transactions that were rolled back.
            entries, waiting = _count(db)
            if self._is_full(entries, waiting + size):
                raise JournalFull(
                    f"{entries} transactions ({waiting / 2**20:.1f} MiB) wait for XTDB, the most "
                    "that may (xtdb.journal_entries, xtdb.journal_mib): `foredeck xtdb status` "
                    "tells whether it runs"
                )
        db.execute(
            "INSERT INTO journal (token, state, bytes, queued_ms, blobs) VALUES (?, 0, ?, ?, ?)",
            (token, size, now_ms(), b"".join(map(bytes.fromhex, batch.blobs))),
        )
        self._held = version, entries + 1, waiting + size

    def _held_before(self, db: sqlite3.Connection) -> tuple[int, int, int]:
        """As `_held`: remembered where nobody else has written since, for counting takes longer
        the more waits."""
        version = changes_of_others(db)
        if self._held is None or self._held[0] != version:
            self._held = version, *_count(db)
        return self._held

    def _is_full(self, entries: int, size: int) -> bool:
        return entries >= self._bounds.entries or size > self._bounds.bytes

    def fetched(self, db: sqlite3.Connection, batch: Batch, token: Token) -> None:
        """Note that versions which were missing are here."""
        db.executemany(
            "DELETE FROM missing WHERE id = ? AND token = ?",
            ((codec.id_column(document.id), token) for document in batch.puts),
        )

    # What waits

    def waiting(self, limit: int) -> list[JournalEntry]:
        """The oldest transactions that wait, in their order."""
        with self._translated():
            rows = self._db.execute(
                "SELECT j.number, j.token, t.time_ms, j.blobs FROM journal j"
                " JOIN tx t ON t.token = j.token WHERE j.state = 0 ORDER BY j.number LIMIT ?",
                (limit,),
            ).fetchall()
            return [self._entry(*row) for row in rows]

    def newest(self) -> int:
        """The number of the newest transaction, 0 for none."""
        with self._translated():
            (number,) = self._db.execute("SELECT coalesce(max(number), 0) FROM journal").fetchone()
        return int(number)

    def waiting_until(self, number: int) -> int:
        """How many of the transactions up to this one wait."""
        with self._translated():
            (count,) = self._db.execute(
                "SELECT count(*) FROM journal WHERE state = 0 AND number <= ?", (number,)
            ).fetchone()
        return int(count)

    def _entry(self, number: int, token: str, time_ms: int, blobs: bytes) -> JournalEntry:
        documents = [
            (codec.id_text(id), type) for id, type in self._db.execute(_OF_TRANSACTION, (token,))
        ]
        digests = [blobs[start : start + 32].hex() for start in range(0, len(blobs), 32)]
        return JournalEntry(number, Origin(Token(token), time_ms), documents, digests)

    def delivered(self, numbers: Sequence[int]) -> None:
        """XTDB has these."""
        if numbers:
            with self._translated(), self._transaction():
                self._db.executemany(
                    f"UPDATE journal SET state = {DELIVERED} WHERE number = ?",
                    ((number,) for number in numbers),
                )

    def refuse(self, number: int, reason: str) -> None:
        """XTDB will not have it: set aside, so that what comes after it is not held up."""
        with self._translated():
            self._db.execute(
                f"UPDATE journal SET state = {REFUSED}, reason = ? WHERE number = ?",
                (reason[:1000], number),
            )

    def retry_refused(self) -> None:
        """Let what was refused wait once more."""
        with self._translated():
            self._db.execute("UPDATE journal SET state = 0 WHERE state = 2")

    def again(self, tokens: Sequence[Token]) -> int:
        """Let transactions that were delivered wait once more; gives how many."""
        with self._translated(), self._transaction():
            return sum(
                self._db.execute(
                    "UPDATE journal SET state = 0, queued_ms = ? WHERE token = ? AND state = 1",
                    (now_ms(), token),
                ).rowcount
                for token in tokens
            )

    def last_delivered(self) -> Token | None:
        """The newest transaction that XTDB has taken; None for none."""
        with self._translated():
            row = self._db.execute(
                "SELECT token FROM journal WHERE state = 1 ORDER BY number DESC LIMIT 1"
            ).fetchone()
        return None if row is None else Token(row[0])

    def all_delivered(self) -> Iterator[list[Token]]:
        """The tokens of all that was delivered, in pages."""
        last = 0
        while True:
            with self._translated():
                rows = self._db.execute(
                    "SELECT number, token FROM journal WHERE number > ? AND state = 1"
                    " ORDER BY number LIMIT 500",
                    (last,),
                ).fetchall()
            if not rows:
                return
            last = rows[-1][0]
            yield [Token(token) for _, token in rows]

    def refused(self) -> int:
        """How many transactions XTDB has refused."""
        with self._translated():
            (count,) = self._db.execute("SELECT count(*) FROM journal WHERE state = 2").fetchone()
        return int(count)

    def figures(self) -> Backlog:
        """What waits, and what was refused."""
        with self._translated():
            waiting = self._db.execute(
                "SELECT count(*), coalesce(sum(bytes), 0), min(queued_ms) FROM journal"
                " WHERE state = 0"
            ).fetchone()
            row = self._db.execute(
                "SELECT reason FROM journal WHERE state = 2 ORDER BY number DESC LIMIT 1"
            ).fetchone()
        entries, size, oldest_ms = waiting
        return Backlog(entries, size, oldest_ms, self.refused(), None if row is None else row[0])

    # What is missing

    @property
    def position(self) -> Token | None:
        """How far XTDB's changes were followed; None for not at all."""
        with self._translated():
            row = self._db.execute(
                "SELECT value FROM meta WHERE key = 'journal_position'"
            ).fetchone()
        return None if row is None or not row[0] else Token(row[0])

    @property
    def has_followed(self) -> bool:
        """Whether XTDB's changes were ever read to their end."""
        with self._translated():
            row = self._db.execute("SELECT 1 FROM meta WHERE key = 'journal_position'").fetchone()
        return row is not None

    @property
    def has_foreign(self) -> bool:
        """Whether others than the engines on this copy were ever seen to write."""
        return self._has_foreign or self._read_has_foreign()

    def _read_has_foreign(self) -> bool:
        with self._translated():
            row = self._db.execute("SELECT 1 FROM meta WHERE key = 'journal_foreign'").fetchone()
        self._has_foreign = row is not None
        return self._has_foreign

    def follow_anew(self) -> None:
        """Let the next engine read all changes from the first, as on a new machine."""
        with self._translated():
            self._db.execute("DELETE FROM meta WHERE key = 'journal_position'")

    def follow(self, changes: Iterable[Change], position: Token | None) -> None:
        """Take in changes up to `position`: those that are not here are missing."""
        with self._translated(), self._transaction():
            self._add_missing(changes)
            self._db.execute(
                "INSERT INTO meta VALUES ('journal_position', ?)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (position or "",),
            )

    def add_missing(self, changes: Iterable[Change]) -> None:
        """As `follow`, of single versions that were met on the way."""
        with self._translated(), self._transaction():
            self._add_missing(changes)

    def _add_missing(self, changes: Iterable[Change]) -> None:
        rows = [(codec.id_column(change.id), change.token, change.type) for change in changes]
        absent = [row for row in rows if self._db.execute(_HELD, row[:2]).fetchone() is None]
        self._db.executemany("INSERT OR IGNORE INTO missing VALUES (?, ?, ?)", absent)
        if absent:
            self._db.execute("INSERT OR IGNORE INTO meta VALUES ('journal_foreign', '')")

    def missing_in(self, tokens: Sequence[Token]) -> list[str]:
        """Documents of which a version is missing that one of these transactions brought."""
        with self._translated():
            rows = select_in(self._db, "SELECT DISTINCT id FROM missing", "token", list(tokens))
            return [codec.id_text(id) for (id,) in rows]

    def all_missing(self) -> Iterator[list[str]]:
        """Documents of which a version is missing, in pages."""
        last: str | bytes = ""
        while True:
            with self._translated():
                rows = self._db.execute(
                    "SELECT DISTINCT id FROM missing WHERE id > ? ORDER BY id LIMIT 500", (last,)
                ).fetchall()
            if not rows:
                return
            last = rows[-1][0]
            yield [codec.id_text(id) for (id,) in rows]

    def missing_of(self, ids: Sequence[str]) -> dict[str, set[Token]]:
        """Which versions of these documents are missing, by id; those without any are left out."""
        found: dict[str, set[Token]] = {}
        if self.any_missing():
            with self._translated():
                columns = [codec.id_column(id) for id in ids]
                for id, token in select_in(
                    self._db, "SELECT id, token FROM missing", "id", columns
                ):
                    found.setdefault(codec.id_text(id), set()).add(Token(token))
        return found

    def is_missing(self, type: str) -> bool:
        """Whether any version of a document of this type is missing."""
        if not self.any_missing():
            return False
        with self._translated():
            row = self._db.execute("SELECT 1 FROM missing WHERE type = ? LIMIT 1", (type,))
            return row.fetchone() is not None

    def any_missing(self) -> bool:
        """Whether anything is missing; costs next to nothing while nobody writes."""
        with self._translated():
            version = changes_of_others(self._db)
            if self._seen is None or self._seen[0] != version:
                row = self._db.execute("SELECT 1 FROM missing LIMIT 1").fetchone()
                self._seen = version, row is not None
        return self._seen[1]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._seen = None
        with immediate(self._db):
            yield

    @contextmanager
    def _translated(self) -> Iterator[None]:
        with translated(self.path, self._busy_timeout_ms):
            yield


def _count(db: sqlite3.Connection) -> tuple[int, int]:
    entries, size = db.execute(
        "SELECT count(*), coalesce(sum(bytes), 0) FROM journal WHERE state = 0"
    ).fetchone()
    return entries, size


def read_backlog(path: Path) -> Backlog:
    """What waits in the file at `path`, which need not be there."""
    if not path.is_file():
        return Backlog(0, 0, None, 0, None)
    with closing(Journal(path, JournalBounds(0, 0))) as journal:
        return journal.figures()

"""The journal's file, and the queue in it of what waits for XTDB.

Its tables lie in the file of the local copy, where they commit in one transaction with the versions
that they speak of. `journal` has a row for each transaction that was committed here: it waits until
XTDB has it. `missing` names the versions known to be in XTDB and not here: what other machines
wrote, until it is read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from foredeck.errors import StoreUnavailable
from foredeck.store.clock import now_ms
from foredeck.store.protocol import Batch, Origin, Token
from foredeck.store.sqlite import codec
from foredeck.store.sqlite.connection import POSITION_BITS, immediate, new_store_id, translated
from foredeck.store.sqlite.reading import changes_of_others

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


WAITING, DELIVERED, QUARANTINED = range(3)
"""The states of an entry, as stored."""

_DIGEST_BYTES = 32
_MOST_REASON = 1000
_PAGE = 500
_DOCUMENTS = f"""
SELECT d.id, d.type FROM tx t
JOIN version v ON v.number >= t.seq << {POSITION_BITS} AND v.number < (t.seq + 1) << {POSITION_BITS}
JOIN document d ON d.number = v.document WHERE t.token = ? ORDER BY v.number"""


class JournalFull(StoreUnavailable):
    """As much waits for XTDB as may wait: nothing more is accepted."""


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
    """How much waits for XTDB.

    entries, bytes  transactions, and text in them
    oldest_ms       when the oldest was committed; None where nothing waits
    quarantined     transactions that XTDB has refused, and its `reason` for the last one
    """

    entries: int
    bytes: int
    oldest_ms: int | None
    quarantined: int
    reason: str | None


class DeliveryQueue:
    """The entries of one local copy, oldest first."""

    def __init__(self, file: JournalFile, bounds: JournalBounds) -> None:
        self._file = file
        self._bounds = bounds
        self._last_count: tuple[int, int, int] | None = None
        """SQLite's counter of other connections' commits, and what waited after the last commit of
        this one: transactions and bytes."""

    # Within the transactions of the local copy

    def add(self, db: sqlite3.Connection, batch: Batch, token: Token) -> None:
        """Let a transaction wait for XTDB, as a part of it. Raises `JournalFull`."""
        size = sum(map(len, batch.blobs.values()))
        size += sum(len(document.content or "") for document in batch.puts)
        version, entries, waiting = self._count_before(db)
        if self._is_full(entries, waiting + size):
            # What is remembered may include transactions that were rolled back.
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
        self._last_count = version, entries + 1, waiting + size

    def _count_before(self, db: sqlite3.Connection) -> tuple[int, int, int]:
        """As `_last_count`. Counting takes longer the more waits, and a model call waits for this:
        so it is remembered for as long as no other process has written."""
        version = changes_of_others(db)
        if self._last_count is None or self._last_count[0] != version:
            self._last_count = version, *_count(db)
        return self._last_count

    def _is_full(self, entries: int, size: int) -> bool:
        return entries >= self._bounds.entries or size > self._bounds.bytes

    # Delivering

    def oldest(self, limit: int) -> list[JournalEntry]:
        """The transactions that have waited longest, in their order."""
        with self._file.translated():
            rows = self._file.db.execute(
                "SELECT j.number, j.token, t.time_ms, j.blobs FROM journal j"
                " JOIN tx t ON t.token = j.token WHERE j.state = 0 ORDER BY j.number LIMIT ?",
                (limit,),
            ).fetchall()
            return [self._entry(*row) for row in rows]

    def _entry(self, number: int, token: str, time_ms: int, blobs: bytes) -> JournalEntry:
        documents = [
            (codec.id_text(id), type) for id, type in self._file.db.execute(_DOCUMENTS, (token,))
        ]
        starts = range(0, len(blobs), _DIGEST_BYTES)
        digests = [blobs[start : start + _DIGEST_BYTES].hex() for start in starts]
        return JournalEntry(number, Origin(Token(token), time_ms), documents, digests)

    def newest(self) -> int:
        """The number of the newest transaction, 0 for none."""
        with self._file.translated():
            (number,) = self._file.db.execute(
                "SELECT coalesce(max(number), 0) FROM journal"
            ).fetchone()
        return int(number)

    def waiting_up_to(self, number: int) -> int:
        """How many of the transactions up to this one wait."""
        with self._file.translated():
            (count,) = self._file.db.execute(
                "SELECT count(*) FROM journal WHERE state = 0 AND number <= ?", (number,)
            ).fetchone()
        return int(count)

    def mark_delivered(self, numbers: Sequence[int]) -> None:
        """XTDB has these."""
        if numbers:
            with self._file.transaction():
                self._file.db.executemany(
                    f"UPDATE journal SET state = {DELIVERED} WHERE number = ?",
                    ((number,) for number in numbers),
                )

    def quarantine(self, number: int, reason: str) -> None:
        """XTDB refuses this one: it no longer holds up what comes after it."""
        with self._file.translated():
            self._file.db.execute(
                f"UPDATE journal SET state = {QUARANTINED}, reason = ? WHERE number = ?",
                (reason[:_MOST_REASON], number),
            )

    def release_quarantined(self) -> None:
        """Let what was quarantined wait once more."""
        with self._file.translated():
            self._file.db.execute("UPDATE journal SET state = 0 WHERE state = 2")

    def deliver_again(self, tokens: Sequence[Token]) -> int:
        """Let transactions that were delivered wait once more; returns how many."""
        with self._file.transaction():
            return sum(
                self._file.db.execute(
                    "UPDATE journal SET state = 0, queued_ms = ? WHERE token = ? AND state = 1",
                    (now_ms(), token),
                ).rowcount
                for token in tokens
            )

    def last_delivered(self) -> Token | None:
        """The newest transaction that XTDB has accepted; None for none."""
        with self._file.translated():
            row = self._file.db.execute(
                "SELECT token FROM journal WHERE state = 1 ORDER BY number DESC LIMIT 1"
            ).fetchone()
        return None if row is None else Token(row[0])

    def pages_of_delivered(self) -> Iterator[list[Token]]:
        """The tokens of all that was delivered, a page at a time."""
        last = 0
        while True:
            with self._file.translated():
                rows = self._file.db.execute(
                    "SELECT number, token FROM journal WHERE number > ? AND state = 1"
                    f" ORDER BY number LIMIT {_PAGE}",
                    (last,),
                ).fetchall()
            if not rows:
                return
            last = rows[-1][0]
            yield [Token(token) for _, token in rows]

    # Figures

    def quarantined(self) -> int:
        """How many transactions are quarantined."""
        with self._file.translated():
            (count,) = self._file.db.execute(
                "SELECT count(*) FROM journal WHERE state = 2"
            ).fetchone()
        return int(count)

    def backlog(self) -> Backlog:
        """How much waits, and how much is quarantined."""
        with self._file.translated():
            entries, size, oldest_ms = self._file.db.execute(
                "SELECT count(*), coalesce(sum(bytes), 0), min(queued_ms) FROM journal"
                " WHERE state = 0"
            ).fetchone()
            row = self._file.db.execute(
                "SELECT reason FROM journal WHERE state = 2 ORDER BY number DESC LIMIT 1"
            ).fetchone()
        reason = None if row is None else row[0]
        return Backlog(entries, size, oldest_ms, self.quarantined(), reason)


def _count(db: sqlite3.Connection) -> tuple[int, int]:
    """How many transactions wait, and how many bytes."""
    entries, size = db.execute(
        "SELECT count(*), coalesce(sum(bytes), 0) FROM journal WHERE state = 0"
    ).fetchone()
    return entries, size

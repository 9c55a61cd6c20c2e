"""The journal of a local copy: what waits for XTDB, and what only XTDB has.

Its tables are in the copy's file, so both commit in one transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck.errors import StoreUnavailable
from foredeck.store.clock import now_ms
from foredeck.store.protocol import Batch, Change, Origin, Token, portions
from foredeck.store.sqlite import codec
from foredeck.store.sqlite.connection import immediate
from foredeck.store.sqlite.rows import changes_of_others, select_in
from foredeck.store.store import Store, open_sqlite
from foredeck.store.versions import POSITION_BITS, new_store_id

# `state`: 0 for what waits, 1 for what XTDB has, 2 for what it has refused (quarantined).
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
_PAGE = 500


class JournalFull(StoreUnavailable):
    """Too much waits for XTDB to accept more."""


@dataclass(frozen=True, slots=True)
class JournalBounds:
    entries: int
    bytes: int


_NO_BOUNDS = JournalBounds(0, 0)
"""Of those who add nothing."""


class Journal:
    """The journal's tables in a store's file, on the store's connection."""

    def __init__(self, store: Store, bounds: JournalBounds = _NO_BOUNDS) -> None:
        """Raises `StoreUnavailable`."""
        self.db = store.db
        self.translated = store.translated
        with self.translated():
            self.db.executescript(_TABLES)
        self.queue = DeliveryQueue(self, bounds)
        self.missing = MissingVersions(self)

    def renew_tokens(self) -> None:
        """Gives later transactions unused tokens."""
        # Where a state folder was copied, both copies would go on with the same tokens.
        self.execute("UPDATE meta SET value = ? WHERE key = 'store_id'", new_store_id())

    def execute(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement by itself; its rows."""
        with self.translated():
            return self.db.execute(statement, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits the block's writes or none; raises errors of the store."""
        with self.translated(), immediate(self.db):
            yield


@contextmanager
def opened_journal(path: Path, busy_timeout_ms: int = 800) -> Iterator[Journal]:
    """The journal in the file at `path`, for the block. Raises `StoreUnavailable`."""
    with closing(open_sqlite(path, busy_timeout_ms=busy_timeout_ms)) as store:
        yield Journal(store)


# What waits for XTDB

_DIGEST_BYTES = 32
_MOST_REASON = 1000
_DOCUMENTS = f"""
SELECT d.id, d.type FROM tx t
JOIN version v ON v.number >= t.seq << {POSITION_BITS} AND v.number < (t.seq + 1) << {POSITION_BITS}
JOIN document d ON d.number = v.document WHERE t.token = ? ORDER BY v.number"""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A waiting transaction: its documents, and blobs."""

    number: int
    origin: Origin
    documents: list[tuple[str, str]]
    blobs: list[str]


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much waits for XTDB.

    `oldest_ms`: when the oldest was committed; `quarantined`: transactions that XTDB has refused,
    the last for `reason`.
    """

    entries: int
    bytes: int
    oldest_ms: int | None
    quarantined: int
    reason: str | None


class DeliveryQueue:
    """The entries of one local copy, oldest first."""

    def __init__(self, journal: Journal, bounds: JournalBounds) -> None:
        self._journal = journal
        self._bounds = bounds
        self._last_count: tuple[int, int, int] | None = None
        """SQLite's counter of others' commits, and what waited after our last one."""

    # Within the transactions of the local copy

    def add(self, db: sqlite3.Connection, batch: Batch, token: Token) -> None:
        """Queues a transaction, as a part of it. Raises `JournalFull`."""
        size = sum(map(len, batch.blobs.values()))
        size += sum(len(document.content or "") for document in batch.puts)
        version, entries, waiting = self._count_before(db)
        if self._is_full(entries, waiting + size):
            # What is remembered may include transactions that were rolled back.
            entries, waiting = _count(db)
            if self._is_full(entries, waiting + size):
                raise JournalFull(
                    f"{entries} transactions ({waiting / 2**20:.1f} MiB) wait for XTDB, the most "
                    "allowed: `foredeck xtdb status` says whether it runs"
                )
        db.execute(
            "INSERT INTO journal (token, state, bytes, queued_ms, blobs) VALUES (?, 0, ?, ?, ?)",
            (token, size, now_ms(), b"".join(map(bytes.fromhex, batch.blobs))),
        )
        self._last_count = version, entries + 1, waiting + size

    def _count_before(self, db: sqlite3.Connection) -> tuple[int, int, int]:
        # Counting takes longer the more waits, and a model call waits for this: so the count is
        # remembered for as long as no other process has written.
        version = changes_of_others(db)
        if self._last_count is None or self._last_count[0] != version:
            self._last_count = version, *_count(db)
        return self._last_count

    def _is_full(self, entries: int, size: int) -> bool:
        return entries >= self._bounds.entries or size > self._bounds.bytes

    # Delivering

    def oldest(self, limit: int) -> list[JournalEntry]:
        """The transactions that have waited longest, in their order."""
        rows = self._journal.execute(
            "SELECT j.number, j.token, t.time_ms, j.blobs FROM journal j"
            " JOIN tx t ON t.token = j.token WHERE j.state = 0 ORDER BY j.number LIMIT ?",
            limit,
        )
        return [self._entry(*row) for row in rows]

    def _entry(self, number: int, token: str, time_ms: int, blobs: bytes) -> JournalEntry:
        rows = self._journal.execute(_DOCUMENTS, token)
        documents = [(codec.id_text(id), type) for id, type in rows]
        starts = range(0, len(blobs), _DIGEST_BYTES)
        digests = [blobs[start : start + _DIGEST_BYTES].hex() for start in starts]
        return JournalEntry(number, Origin(Token(token), time_ms), documents, digests)

    def newest(self) -> int:
        return self._number("SELECT coalesce(max(number), 0) FROM journal")

    def waiting_up_to(self, number: int) -> int:
        """How many of the transactions up to this one wait."""
        waiting = "SELECT count(*) FROM journal WHERE state = 0 AND number <= ?"
        return self._number(waiting, number)

    def _number(self, statement: str, *values: Any) -> int:
        return int(self._journal.execute(statement, *values)[0][0])

    def mark_delivered(self, numbers: Sequence[int]) -> None:
        """XTDB has these."""
        if numbers:
            with self._journal.transaction():
                self._journal.db.executemany(
                    "UPDATE journal SET state = 1 WHERE number = ?",
                    ((number,) for number in numbers),
                )

    def quarantine(self, number: int, reason: str) -> None:
        """Sets a transaction aside that XTDB refuses."""
        self._journal.execute(
            "UPDATE journal SET state = 2, reason = ? WHERE number = ?",
            *(reason[:_MOST_REASON], number),
        )

    def release_quarantined(self) -> None:
        """Let what was quarantined wait once more."""
        self._journal.execute("UPDATE journal SET state = 0 WHERE state = 2")

    def deliver_again(self, tokens: Sequence[Token]) -> int:
        """Queues delivered transactions once more; returns how many."""
        with self._journal.transaction():
            return sum(
                self._journal.db.execute(
                    "UPDATE journal SET state = 0, queued_ms = ? WHERE token = ? AND state = 1",
                    (now_ms(), token),
                ).rowcount
                for token in tokens
            )

    def last_delivered(self) -> Token | None:
        """The newest transaction that XTDB has accepted."""
        rows = self._journal.execute(
            "SELECT token FROM journal WHERE state = 1 ORDER BY number DESC LIMIT 1"
        )
        return Token(rows[0][0]) if rows else None

    def pages_of_delivered(self) -> Iterator[list[Token]]:
        """The tokens of all that was delivered, a page at a time."""
        last = 0
        while rows := self._journal.execute(
            "SELECT number, token FROM journal WHERE number > ? AND state = 1"
            f" ORDER BY number LIMIT {_PAGE}",
            last,
        ):
            last = rows[-1][0]
            yield [Token(token) for _, token in rows]

    # Figures

    def quarantined(self) -> int:
        """How many transactions are quarantined."""
        return self._number("SELECT count(*) FROM journal WHERE state = 2")

    def backlog(self) -> Backlog:
        """How much waits, and how much is quarantined."""
        ((entries, size, oldest_ms),) = self._journal.execute(
            "SELECT count(*), coalesce(sum(bytes), 0), min(queued_ms) FROM journal WHERE state = 0"
        )
        rows = self._journal.execute(
            "SELECT reason FROM journal WHERE state = 2 ORDER BY number DESC LIMIT 1"
        )
        reason = rows[0][0] if rows else None
        return Backlog(entries, size, oldest_ms, self.quarantined(), reason)


def _count(db: sqlite3.Connection) -> tuple[int, int]:
    entries, size = db.execute(
        "SELECT count(*), coalesce(sum(bytes), 0) FROM journal WHERE state = 0"
    ).fetchone()
    return entries, size


def read_backlog(path: Path) -> Backlog:
    """What waits in the file at `path`, if it exists."""
    if not path.is_file():
        return Backlog(0, 0, None, 0, None)
    with opened_journal(path) as journal:
        return journal.queue.backlog()


# What only XTDB has

_TRANSACTIONS = 200
_HELD = f"""
SELECT 1 FROM document d JOIN version v ON v.document = d.number
JOIN tx t ON t.seq = v.number >> {POSITION_BITS} WHERE d.id = ? AND t.token = ?"""


class MissingVersions:
    """Versions known by name only, and how far XTDB's changes were read."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._last_look: tuple[int, bool] | None = None
        """SQLite's counter of others' commits, and whether anything was missing then."""
        self._has_foreign = False

    # Within the transactions of the local copy

    def note_fetched(self, db: sqlite3.Connection, batch: Batch, token: Token) -> None:
        """Crosses off missing versions, as a part of the transaction that brings them."""
        db.executemany(
            "DELETE FROM missing WHERE id = ? AND token = ?",
            ((codec.id_column(document.id), token) for document in batch.puts),
        )

    # Following XTDB

    @property
    def position(self) -> Token | None:
        rows = self._journal.execute("SELECT value FROM meta WHERE key = 'journal_position'")
        return Token(rows[0][0]) if rows and rows[0][0] else None

    @property
    def has_followed(self) -> bool:
        """Whether XTDB's changes were ever read to their end."""
        return bool(self._journal.execute("SELECT 1 FROM meta WHERE key = 'journal_position'"))

    @property
    def has_foreign(self) -> bool:
        """Whether anybody else was ever seen to write."""
        if not self._has_foreign:
            rows = self._journal.execute("SELECT 1 FROM meta WHERE key = 'journal_foreign'")
            self._has_foreign = bool(rows)
        return self._has_foreign

    def forget_position(self) -> None:
        """Lets the next engine read all changes from the first."""
        self._journal.execute("DELETE FROM meta WHERE key = 'journal_position'")

    def follow(self, changes: Iterable[Change], position: Token | None) -> None:
        """Records changes up to `position`."""
        self._last_look = None
        with self._journal.transaction():
            # Together with the position: after a kill between them no engine would look for these.
            self._add(changes)
            self._journal.db.execute(
                "INSERT INTO meta VALUES ('journal_position', ?)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (position or "",),
            )

    def add(self, changes: Iterable[Change]) -> None:
        self._last_look = None
        with self._journal.transaction():
            self._add(changes)

    def _add(self, changes: Iterable[Change]) -> None:
        db = self._journal.db
        rows = [(codec.id_column(change.id), change.token, change.type) for change in changes]
        absent = [row for row in rows if db.execute(_HELD, row[:2]).fetchone() is None]
        db.executemany("INSERT OR IGNORE INTO missing VALUES (?, ?, ?)", absent)
        if absent:
            db.execute("INSERT OR IGNORE INTO meta VALUES ('journal_foreign', '')")

    # What is missing

    def any(self) -> bool:
        """Whether anything is missing."""
        # Every read asks this, so the answer is remembered while no other connection commits.
        with self._journal.translated():
            version = changes_of_others(self._journal.db)
        if self._last_look is None or self._last_look[0] != version:
            rows = self._journal.execute("SELECT 1 FROM missing LIMIT 1")
            self._last_look = version, bool(rows)
        return self._last_look[1]

    def any_of_type(self, type: str) -> bool:
        """Whether any version of a document of this type is missing."""
        select = "SELECT 1 FROM missing WHERE type = ? LIMIT 1"
        return self.any() and bool(self._journal.execute(select, type))

    def of_documents(self, ids: Sequence[str]) -> dict[str, set[Token]]:
        """The missing versions of these documents."""
        return self._by_id("id", [codec.id_column(id) for id in ids]) if self.any() else {}

    def of_transactions(self, tokens: Sequence[str]) -> dict[str, set[Token]]:
        """The missing versions of these transactions, by document."""
        return self._by_id("token", list(tokens))

    def _by_id(self, column: str, values: Sequence[str | bytes]) -> dict[str, set[Token]]:
        found: dict[str, set[Token]] = {}
        with self._journal.translated():
            select = "SELECT id, token FROM missing"
            for id, token in select_in(self._journal.db, select, column, values):
                found.setdefault(codec.id_text(id), set()).add(Token(token))
        return found

    def pages_of_transactions(self) -> Iterator[list[str]]:
        """All transactions with a missing version, a page at a time."""
        # Tokens end in a number: of one machine's the longer is the later.
        rows = self._journal.execute(
            "SELECT DISTINCT token FROM missing ORDER BY length(token), token"
        )
        yield from portions((token for (token,) in rows), _TRANSACTIONS)

    def pages_of_ids(self) -> Iterator[list[str]]:
        """All documents of which a version is missing, a page at a time."""
        last: str | bytes = ""
        while rows := self._journal.execute(
            f"SELECT DISTINCT id FROM missing WHERE id > ? ORDER BY id LIMIT {_PAGE}", last
        ):
            last = rows[-1][0]
            yield [codec.id_text(id) for (id,) in rows]

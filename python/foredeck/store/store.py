"""The store in one SQLite file, the default."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from foredeck.errors import Conflict, Missing
from foredeck.model.documents import Document
from foredeck.model.kinds import kind_of
from foredeck.model.records import ARCHIVED
from foredeck.store.clock import now_ms
from foredeck.store.protocol import (
    Advance,
    Batch,
    Change,
    Head,
    Lineage,
    Origin,
    Record,
    Remote,
    Scalar,
    ScanMark,
    Token,
    order_of,
)
from foredeck.store.sqlite import codec
from foredeck.store.sqlite.connection import Synchronous, connect, immediate, translated, vacuum
from foredeck.store.sqlite.rows import (
    BLOB,
    HISTORY,
    NEWEST,
    ORDER,
    REVERSED,
    TX,
    EncodedBlobs,
    SqliteWriter,
    head_of_row,
    is_used_since,
    late_versions,
    lookup_statement,
    needed_blobs,
    prepare,
    raw_digests,
    scan_mark_of,
    select_in,
    writing,
)
from foredeck.store.versions import (
    INDEXED,
    MAX_DOCUMENTS,
    POSITION_BITS,
    check_blob,
    matches,
    restore,
)

D = TypeVar("D", bound=Document)

_CHANGES = (
    "SELECT v.number, t.token, t.time_ms, d.id, d.type FROM version v"
    f" JOIN document d ON d.number = v.document {TX}"
    " WHERE v.number >= ? AND v.number < ? ORDER BY v.number"
)

WithinCommit = Callable[[sqlite3.Connection, Batch, Token], None]
"""Called within each commit's transaction; its exceptions roll back."""


def open_sqlite(
    path: Path | str,
    *,
    synchronous: Synchronous = "normal",
    busy_timeout_ms: int = 800,
    clock: Callable[[], int] = now_ms,
    within: WithinCommit | None = None,
) -> Store:
    """Opens the store at `path`, and creates it if it is missing (0600, folders 0700).

    Raises `StoreUnavailable`, which names file and remedy, if it cannot be opened, is damaged or no
    store, or is busy for `busy_timeout_ms`.
    """
    path = Path(path)
    db = connect(path, synchronous, busy_timeout_ms)
    return Store(db, path, busy_timeout_ms, clock, within)


class Store:
    """Documents and blobs in an SQLite file, over one connection. Not thread-safe; several may be
    open on one file.

    What the file lacks is fetched from `remote` when it is read. Made by `open_sqlite`.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        path: Path,
        busy_timeout_ms: int,
        clock: Callable[[], int],
        within: WithinCommit | None = None,
    ) -> None:
        self.path = path
        self.remote = Remote()
        """The database that this store is a copy of, if there is one."""
        self.within = within
        self.db = db
        """Also for modules with tables of their own in the file."""
        self._busy_timeout_ms = busy_timeout_ms
        self._writer = SqliteWriter(db, clock)
        self._pruned_at: Token | None = None
        self._pruned: dict[str, str | None] = {}
        """What is left of a pruned blob, or None, by hash; as of `_pruned_at`."""

    # Writing

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token:
        """Writes all of it or nothing. Raises `Conflict`, `StoreUnavailable`.

        `origin`: the transaction of another store that this one repeats.
        """
        self.remote.before_commit(batch, origin)
        versions, blobs = prepare(batch)
        with self.translated(), writing(self.db, blobs) as new_blobs:
            token = self._write(batch, versions, new_blobs, origin)
        self.remote.after_commit()
        return token

    @property
    def is_shared(self) -> bool:
        """Whether other machines write to the same database."""
        return self.remote.is_shared

    def commit_for_all(self, batch: Batch) -> Token:
        """Like `commit`, but the shared database decides on `expect`, for all machines.

        Raises `StoreUnavailable` if it does not answer; it may have written the batch nevertheless.
        """
        return self.remote.commit(batch) if self.is_shared else self.commit(batch)

    def commit_all(self, transactions: Sequence[tuple[Origin, Batch]]) -> None:
        """Writes another store's transactions, all or none; three times as fast as single
        commits."""
        prepared = [prepare(batch) for _, batch in transactions]
        blobs = {digest: data for _, more in prepared for digest, data in more.items()}
        with self.translated(), writing(self.db, blobs) as new_blobs:
            for (origin, batch), (versions, _) in zip(transactions, prepared, strict=True):
                self._write(batch, versions, new_blobs, origin)
                new_blobs = {}  # the first transaction has written those of all

    def _write(
        self,
        batch: Batch,
        versions: Sequence[codec.EncodedVersion],
        blobs: EncodedBlobs,
        origin: Origin | None,
    ) -> Token:
        token = self._writer.write(versions, blobs, batch.expect, origin)
        if self.within is not None:
            self.within(self.db, batch, token)
        return token

    # Reading. No transaction is needed, since rows are only ever added.

    def get(self, id: str, kind: type[D], at: Token | None = None) -> D | None:
        """The newest version, or the newest not later than `at`, with its content.

        Raises `Missing` for an unknown token, `Corrupt` if bytes and hashes disagree, `ValueError`
        if `kind` is another type's class.
        """
        row = self._row(id, at)
        if row is None:
            return None
        return restore(kind, codec.decode_fields(id, *row[3:]), self.blob)

    def document(self, head: Head) -> Document | None:
        """A version with its content."""
        return self.get(head.id, kind_of(head.type), head.token)

    def head(self, id: str, at: Token | None = None) -> Head | None:
        """Like `get`, without content."""
        row = self._row(id, at)
        return None if row is None else head_of_row(row)

    def _row(self, id: str, at: Token | None) -> Any:
        self.remote.fetch([id], at)
        stored = codec.id_column(id)
        with self.translated():
            if at is None:
                return self.db.execute(f"{NEWEST} WHERE d.id = ?", (stored,)).fetchone()
            seq, *order = self._transaction_at(at)
            first = seq << POSITION_BITS
            exact = " WHERE d.id = ? AND v.number >= ? AND v.number < ?"
            row = self.db.execute(HISTORY + exact, (stored, first, first + MAX_DOCUMENTS))
            if (stored_row := row.fetchone()) is not None:
                return stored_row
            # Not written in that transaction: as of then it was the newest of those before.
            earlier = f" WHERE d.id = ? AND ({ORDER}) < (?, ?, ?) ORDER BY {REVERSED} LIMIT 1"
            return self.db.execute(HISTORY + earlier, (stored, *order)).fetchone()

    def _transaction_at(self, token: Token) -> Any:
        row = self.db.execute(
            "SELECT seq, time_ms, place, token FROM tx WHERE token = ?", (token,)
        ).fetchone()
        if row is None:
            raise Missing(f"no transaction {token!r} in this store")
        return row

    def heads(self, ids: Iterable[str]) -> dict[str, Head]:
        """Newest heads of documents, without missing ones."""
        unique = list(dict.fromkeys(ids))
        self.remote.fetch(unique)
        stored = [codec.id_column(id) for id in unique]
        with self.translated():
            rows = select_in(self.db, NEWEST, "d.id", stored)
            by_id = {head.id: head for head in map(head_of_row, rows)}
        return {id: by_id[id] for id in unique if id in by_id}

    def history(self, id: str) -> list[Head]:
        """All versions, oldest first; empty for an unknown id."""
        self.remote.fetch([id])
        with self.translated():
            rows = self.db.execute(
                f"{HISTORY} WHERE d.id = ? ORDER BY {ORDER}", (codec.id_column(id),)
            )
            return [head_of_row(row) for row in rows]

    def query(
        self,
        type: str,
        where: Mapping[str, Scalar | None] | None = None,
        *,
        limit: int | None = None,
    ) -> list[Head]:
        """Newest heads of one type whose fields equal `where`, oldest document first.

        Equal as JSON: `True` is not 1, and an absent field is None. `source.path` reaches into the
        source binding. Fields in `INDEXED` are looked up, others compared.
        """
        self.remote.fetch_query(type, where)
        conditions = dict(where or {})
        keys = [
            codec.field_key(type, name, value)
            for name in INDEXED
            if (value := conditions.get(name)) is not None
        ]
        rest = {n: v for n, v in conditions.items() if v is None or n not in INDEXED}
        statement = f"{NEWEST} WHERE d.type = ? ORDER BY d.number"
        values: list[str | bytes] = [type]
        if keys or type not in codec.NOT_BY_TYPE:
            first, *more = keys or [codec.type_key(type)]
            statement, values = lookup_statement(1 + len(more)), [*more, first]
        with self.translated():
            heads = (
                head
                for head in map(head_of_row, self.db.execute(statement, values))
                if all(matches(head.fields, name, value) for name, value in rest.items())
            )
            return list(islice(heads, limit))

    def blob(self, digest: str) -> bytes:
        """The bytes, or what pruning has left of them. Raises `Missing`; `Corrupt` if they hash
        otherwise."""
        blobs = self.blobs([digest]) or self.left_of([digest])
        if digest not in blobs:
            raise Missing(f"no blob {digest} in this store")
        return blobs[digest]

    def blobs(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Several blobs as they were put, without missing and pruned ones."""
        wanted = list(digests)
        with self.translated():
            rows = list(select_in(self.db, BLOB, "hash", raw_digests(wanted)))
        blobs = {
            (digest := hash.hex()): check_blob(
                digest, codec.decode_blob(digest, size, encoding, data)
            )
            for hash, size, encoding, data in rows
        }
        absent = [digest for digest in wanted if digest not in blobs]
        return blobs | self.remote.fetch_blobs(absent) if absent else blobs

    def is_pruned(self, digest: str) -> bool:
        """Whether this missing blob was pruned."""
        self._refresh_pruned()
        return digest in self._pruned

    def left_of(self, digests: Iterable[str]) -> dict[str, bytes]:
        """What pruning has left of missing blobs, by old hash."""
        self._refresh_pruned()
        pruned = {digest: self._pruned[digest] for digest in digests if digest in self._pruned}
        stubs = self.blobs({stub for stub in pruned.values() if stub is not None})
        return {
            digest: ARCHIVED.encode() if stub is None else stubs[stub]
            for digest, stub in pruned.items()
            if stub is None or stub in stubs
        }

    def _refresh_pruned(self) -> None:
        latest = self.latest()
        if latest == self._pruned_at:
            return
        self._pruned.clear()
        archived = self.query("archived")
        for head in archived:
            self._pruned |= dict.fromkeys(head.fields.get("texts") or ())
        for head in archived:
            marks = head.fields.get("messages") or {}
            self._pruned |= {address: mark.get("$json") for address, mark in marks.items()}
        self._pruned_at = latest

    def changes_since(self, token: Token | None, *, limit: int = 1000) -> Sequence[Change]:
        """Versions that came in after `token` (None: all), in whole transactions.

        What an import adds to a known token comes with that token: a follower starts over after an
        import.
        """
        with self.translated():
            first = 0 if token is None else (self._transaction_at(token)[0] + 1) << POSITION_BITS
            (last,) = self.db.execute(
                "SELECT max(number) FROM (SELECT number FROM version WHERE number >= ?"
                " ORDER BY number LIMIT ?)",
                (first, limit),
            ).fetchone()
            if last is None:
                return []
            # The last transaction as a whole, even beyond the limit: callers go on from its token.
            end = ((last >> POSITION_BITS) + 1) << POSITION_BITS
            rows = self.db.execute(_CHANGES, (first, end))
            return [Change(Token(t), ms, codec.id_text(id), type) for _, t, ms, id, type in rows]

    def transactions(self, tokens: Iterable[Token]) -> list[Origin]:
        """Those of `tokens` that are known here, with their times, oldest first."""
        unique = list(dict.fromkeys(tokens))
        self.remote.fetch_transactions(unique)
        with self.translated():
            rows = select_in(self.db, "SELECT token, time_ms FROM tx", "token", unique)
            origins = [Origin(Token(token), time_ms) for token, time_ms in rows]
        return sorted(origins, key=order_of)

    def latest(self) -> Token | None:
        """The transaction that came in last."""
        with self.translated():
            row = self.db.execute("SELECT token FROM tx ORDER BY seq DESC LIMIT 1").fetchone()
        return None if row is None else Token(row[0])

    def lineage(self) -> Lineage:
        """What a follower must find unchanged, or else starts over."""
        with self.translated():
            (id,) = self.db.execute("SELECT value FROM meta WHERE key = 'store_id'").fetchone()
            return Lineage(id, late_versions(self.db))

    # Copying

    def records(self, after: Token | None, limit: int) -> list[Record]:
        """Transactions in the order in which they came in. Raises `Missing` for an unknown
        token."""
        with self.translated():
            seq = 0 if after is None else self._transaction_at(after)[0]
            rows = self.db.execute(
                "SELECT seq, token, time_ms FROM tx WHERE seq > ? ORDER BY seq LIMIT ?",
                (seq, limit),
            ).fetchall()
            changes: dict[int, list[tuple[str, str]]] = {seq: [] for seq, _, _ in rows}
            first, last = (rows[0][0], rows[-1][0]) if rows else (0, -1)
            span = (first << POSITION_BITS, (last + 1) << POSITION_BITS)
            for number, _, _, id, type in self.db.execute(_CHANGES, span):
                changes[number >> POSITION_BITS].append((codec.id_text(id), type))
        return [Record(Origin(token, ms), tuple(changes[seq])) for seq, token, ms in rows]

    def documents(self, record: Record) -> list[Document]:
        """A transaction's versions with their content, in its order."""
        token = record.origin.token
        documents = [self.get(id, kind_of(type), token) for id, type in record.changes]
        return [document for document in documents if document is not None]

    def digests(self, after: str, limit: int) -> list[str]:
        """Hashes of the blobs that come after `after`, in ascending order."""
        with self.translated():
            rows = self.db.execute(
                "SELECT hash FROM blob WHERE hash > ? ORDER BY hash LIMIT ?",
                (bytes.fromhex(after), limit),
            )
            return [hash.hex() for (hash,) in rows]

    def fetch_all(self, advance: Advance = lambda: None) -> bool:
        """Fetches what only a database has; returns whether nothing is left there. May wait for the
        database."""
        return self.remote.fetch_all(advance)

    @property
    def trouble(self) -> str:
        """What a user should see at a glance, such as a database that is away."""
        return self.remote.trouble

    def close(self) -> None:
        """Closes the connection; may be called twice."""
        self.remote.close()
        with self.translated():
            self.db.close()

    # Erasing

    def needed(
        self, digests: Iterable[str], gone: Collection[str], advance: Advance = lambda: None
    ) -> tuple[set[str], ScanMark]:
        """Which of `digests` documents other than `gone` need, and how far the store was read.
        Raises `StoreUnavailable`."""
        self.remote.fetch_documents(advance)
        with self.translated():
            self.db.execute("BEGIN")  # one state, whatever is committed meanwhile
            try:
                scanned = scan_mark_of(self.db)
                return needed_blobs(self.db, self.blobs, digests, gone, advance), scanned
            finally:
                self.db.execute("ROLLBACK")

    def check_unused(self, scanned: ScanMark, ids: Collection[str], blobs: Iterable[str]) -> None:
        """Raises `Conflict` if anything since `scanned` uses them."""
        with self.translated():
            used = is_used_since(self.db, self.blobs, scanned, ids, blobs)
        if used:
            raise Conflict(
                "another process wrote to the store meanwhile, so nothing was deleted: close Pi in "
                "these sessions, and try again"
            )

    def erase(
        self, ids: Collection[str], blobs: Collection[str], scanned: ScanMark | None = None
    ) -> None:
        """Removes documents and blobs, and overwrites their bytes.

        Raises `Conflict`, with nothing erased, if anything since `scanned` uses them.
        """
        with self.translated(), overwriting(self.db), immediate(self.db):
            if scanned is not None:
                # Under the lock: nothing can come between this look and the deletion.
                self.check_unused(scanned, ids, blobs)
            delete(self.db, ids, blobs)

    def vacuum(self) -> tuple[int, int]:
        """Frees space; returns sizes before and after in bytes. Raises `StoreUnavailable` while
        another process uses the file."""
        with self.translated():
            return vacuum(self.db)

    def translated(self) -> AbstractContextManager[None]:
        return translated(self.path, self._busy_timeout_ms)


@contextmanager
def overwriting(db: sqlite3.Connection) -> Iterator[None]:
    """Overwrites what the block deletes with zeros, in file and log."""
    db.execute("PRAGMA secure_delete = ON")
    try:
        yield
    finally:
        # It costs each deletion a write, and nothing but index entries is deleted otherwise.
        db.execute("PRAGMA secure_delete = OFF")
    # The log still has the old pages: it is copied into the file and cut off.
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def delete(db: sqlite3.Connection, ids: Collection[str], blobs: Collection[str]) -> None:
    for id in ids:
        _delete_document(db, codec.id_column(id))
    db.executemany("DELETE FROM blob WHERE hash = ?", [(d,) for d in raw_digests(blobs)])


def _delete_document(db: sqlite3.Connection, id: str | bytes) -> None:
    newest = db.execute(f"{HISTORY} WHERE d.id = ? ORDER BY {ORDER} DESC LIMIT 1", (id,)).fetchone()
    if newest is None:
        return
    (number,) = db.execute("SELECT number FROM document WHERE id = ?", (id,)).fetchone()
    # Only the newest version has index entries.
    keys = codec.lookup_keys(head_of_row(newest).fields)
    db.executemany(
        "DELETE FROM lookup WHERE key = ? AND document = ?", [(key, number) for key in keys]
    )
    db.execute("DELETE FROM version WHERE document = ?", (number,))
    db.execute("DELETE FROM document WHERE number = ?", (number,))

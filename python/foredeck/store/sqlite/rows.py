"""Versions as rows: reading statements, needed blobs, and commits, prepared before the
transaction."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from foredeck.errors import Conflict
from foredeck.store.protocol import (
    Advance,
    Batch,
    Head,
    Origin,
    ScanMark,
    Token,
    order_of,
    portions,
)
from foredeck.store.references import RECORDS, in_message, references
from foredeck.store.sqlite import codec
from foredeck.store.sqlite.codec import EncodedVersion
from foredeck.store.sqlite.connection import immediate
from foredeck.store.versions import (
    MAX_DOCUMENTS,
    POSITION_BITS,
    LazyFields,
    new_store_id,
    prepared,
    without_nulls,
)

CHUNK = 500
"""Values per `IN (...)`."""

COLUMNS = "t.token, t.time_ms, d.id, d.type, v.content_hash, v.view_hash, v.text_hash, v.body"
TX = f"JOIN tx t ON t.seq = v.number >> {POSITION_BITS}"
NEWEST = f"SELECT {COLUMNS} FROM document d JOIN version v ON v.number = d.head {TX}"
HISTORY = f"SELECT {COLUMNS} FROM document d JOIN version v ON v.document = d.number {TX}"
ORDER = "t.time_ms, t.place, t.token"
REVERSED = "t.time_ms DESC, t.place DESC, t.token DESC"
BLOB = "SELECT hash, size, encoding, data FROM blob"


def changes_of_others(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA data_version").fetchone()[0])


def select_in(
    db: sqlite3.Connection, select: str, column: str, values: Sequence[Any]
) -> Iterator[Any]:
    """Rows of `select` with `column` among any number of `values`."""
    for portion in portions(values, CHUNK):
        marks = ",".join("?" * len(portion))
        yield from db.execute(f"{select} WHERE {column} IN ({marks})", portion)


def lookup_statement(keys: int) -> str:
    """Newest heads with all of `keys` index entries, most selective first."""
    # `CROSS JOIN` keeps SQLite from reordering them.
    more = "".join(
        f" CROSS JOIN lookup l{i} ON l{i}.key = ? AND l{i}.document = l0.document"
        for i in range(1, keys)
    )
    return (
        f"SELECT {COLUMNS} FROM lookup l0{more}"
        " CROSS JOIN document d ON d.number = l0.document"
        f" CROSS JOIN version v ON v.number = d.head {TX}"
        " WHERE l0.key = ? ORDER BY l0.document"
    )


def raw_digests(digests: Iterable[str]) -> list[bytes]:
    """Digests as stored, without what is no SHA-256."""
    raw = []
    for digest in dict.fromkeys(digests):
        try:
            raw.append(bytes.fromhex(digest))
        except ValueError:
            continue
    return raw


def head_of_row(row: Any) -> Head:
    token, time_ms, stored_id, type_, *columns = row
    id = codec.id_text(stored_id)
    return Head(
        id, type_, Token(token), time_ms, LazyFields(codec.decode_fields, id, type_, *columns)
    )


def late_versions(db: sqlite3.Connection) -> int:
    """How many versions joined an existing transaction."""
    row = db.execute("SELECT value FROM meta WHERE key = 'late'").fetchone()
    return 0 if row is None else int(row[0])


BATCH = 500
"""Versions held at once."""

Read = Callable[[Iterable[str]], Mapping[str, bytes]]
"""Blobs by hash, without missing ones."""

_VERSIONS = """
SELECT v.number, d.id, d.type, v.content_hash, v.view_hash, v.text_hash, v.body
FROM version v JOIN document d ON d.number = v.document
WHERE v.number > ? ORDER BY v.number"""
_HASH = re.compile(r'"([0-9a-f]{64})"')
_MARK = re.compile(r'"\$(?:text|base64|json)":"[0-9a-f]{64}"')
_WITHOUT = frozenset({"chat", "member"})
"""Types whose only blob is their content."""


def scan_mark_of(db: sqlite3.Connection) -> ScanMark:
    """The file's present end."""
    (last,) = db.execute("SELECT max(number) FROM version").fetchone()
    return ScanMark(last or 0, late_versions(db))


def needed_blobs(
    db: sqlite3.Connection,
    read: Read,
    digests: Iterable[str],
    gone: Collection[str],
    advance: Advance,
) -> set[str]:
    """Those of `digests` that other documents than `gone` need. Constant memory."""
    # Erasing relies on this, so all versions are read each time: an index kept beside them could be
    # wrong after a crash, a restore or an import.
    search = _Search(read, digests)
    rows = db.execute(_VERSIONS, (0,))
    while search.wanted and (batch := rows.fetchmany(BATCH)):
        search.look([row[1:] for row in batch if codec.id_text(row[1]) not in gone])
        advance()
    return search.found


def is_used_since(
    db: sqlite3.Connection,
    read: Read,
    scanned: ScanMark,
    ids: Collection[str],
    blobs: Iterable[str],
) -> bool:
    """Whether anything since the mark uses these."""
    if late_versions(db) != scanned.late:
        return True
    search = _Search(read, blobs)
    for _, stored, type_, *columns in db.execute(_VERSIONS, (scanned.last,)):
        id = codec.id_text(stored)
        if type_ == "forgotten":
            continue
        if id in ids or _names(codec.decode_fields(id, type_, *columns), ids):
            return True
        search.look([(stored, type_, *columns)])
    return bool(search.found)


def _names(fields: Mapping[str, Any], ids: Collection[str]) -> bool:
    """Whether a document belongs to a session in `ids`, or lists one."""
    sessions = (fields.get("session"), fields.get("parent_session"))
    return fields.get("object") in ids or any(f"session:{id}" in ids for id in sessions if id)


def _hashes(text: str) -> set[str]:
    # JSON of others may escape digits and letters; ours never does.
    hashes = set(_HASH.findall(text))
    return hashes | {""} if "\\u003" in text or "\\u006" in text else hashes


class _Search:
    """Moves hits from `wanted` to `found`."""

    def __init__(self, read: Read, digests: Iterable[str]) -> None:
        self._read = read
        self.wanted = set(digests)
        self.found: set[str] = set()

    def look(self, rows: Iterable[Any]) -> None:
        suspects: list[tuple[Any, set[str]]] = []
        messages: set[str] = set()
        for row in rows:
            type_, text_hash, body = row[1], row[4], row[5]
            if text_hash is not None:
                self._take({text_hash.hex()})
            if type_ in _WITHOUT:
                continue
            text = codec.body_text(codec.id_text(row[0]), type_, body)
            suspects.append((row, _hashes(text)))
            if type_ in RECORDS:
                messages |= _hashes(_MARK.sub("", text))
        holding = self._holding(messages - {""})
        # Most versions name nothing that is searched for: these cost an inflating, and no parsing.
        for row, hashes in suspects:
            if "" in hashes or not hashes.isdisjoint(self.wanted) or not hashes.isdisjoint(holding):
                self._parse(row, holding)

    def _holding(self, messages: Iterable[str]) -> dict[str, set[str]]:
        by_message = {}
        for digest, data in self._read(messages).items():
            if data.startswith((b"{", b"[")):
                hashes = _hashes(data.decode(errors="replace"))
                if "" in hashes or not hashes.isdisjoint(self.wanted):
                    by_message[digest] = in_message(data)
        return by_message

    def _parse(self, row: Any, holding: Mapping[str, set[str]]) -> None:
        stored, type_, *columns = row
        fields = codec.decode_fields(codec.id_text(stored), type_, *columns)
        refs = references(type_, fields)
        self._take(refs.messages | refs.needed | refs.possible)
        for digest in refs.messages & holding.keys():
            self._take(holding[digest])

    def _take(self, digests: set[str]) -> None:
        hits = self.wanted & digests
        self.found |= hits
        self.wanted -= hits


# What a commit writes

_KNOWN = f"""
SELECT d.id, d.number, d.type, t.token, t.time_ms,
    v.content_hash, v.view_hash, v.text_hash, v.body
FROM document d JOIN version v ON v.number = d.head
JOIN tx t ON t.seq = d.head >> {POSITION_BITS}"""

EncodedBlobs = dict[str, tuple[int, int, bytes]]
"""Size, encoding and bytes by hash."""

_COUNT_LATE = (
    "INSERT INTO meta VALUES ('late', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1"
)


@dataclass(slots=True)
class _Rows:
    """Rows to insert, collected per table."""

    documents: list[tuple[int, str | bytes, str, int]] = field(default_factory=list)
    heads: list[tuple[int, int]] = field(default_factory=list)
    versions: list[tuple[int | bytes | None, ...]] = field(default_factory=list)
    keys: list[tuple[bytes, int]] = field(default_factory=list)
    stale_keys: list[tuple[bytes, int]] = field(default_factory=list)


def prepare(batch: Batch) -> tuple[list[EncodedVersion], dict[str, bytes]]:
    """A batch's checked versions and blobs, long contents included."""
    documents, blobs = prepared(batch)
    return [codec.encode_version(stored) for _, stored in documents], blobs


@contextmanager
def writing(db: sqlite3.Connection, blobs: Mapping[str, bytes]) -> Iterator[EncodedBlobs]:
    """A transaction, with the new ones of `blobs` encoded."""
    # Blobs are deflated before the lock is taken, so that no other writer waits for that.
    generation = changes_of_others(db)
    new_blobs = _encode_new(db, blobs)
    with immediate(db):
        if changes_of_others(db) != generation:  # what was here may have been erased meanwhile
            rest = {d: data for d, data in blobs.items() if d not in new_blobs}
            new_blobs |= _encode_new(db, rest)
        yield new_blobs


def _encode_new(db: sqlite3.Connection, blobs: Mapping[str, bytes]) -> EncodedBlobs:
    there = {
        row[0].hex() for row in select_in(db, "SELECT hash FROM blob", "hash", raw_digests(blobs))
    }
    return {
        digest: (len(data), *codec.encode_blob(data))
        for digest, data in blobs.items()
        if digest not in there
    }


class SqliteWriter:
    """Writes versions and blobs into its caller's transaction."""

    def __init__(self, db: sqlite3.Connection, clock: Callable[[], int]) -> None:
        self._db = db
        self._clock = clock

    def write(
        self,
        versions: Sequence[EncodedVersion],
        blobs: EncodedBlobs,
        expect: Mapping[str, Token | None],
        origin: Origin | None,
    ) -> Token:
        """Writes everything. Raises `Conflict` like `Store.commit`, `ValueError` for too many
        documents."""
        ids = [codec.id_column(version.id) for version in versions]
        unique = list(dict.fromkeys([*ids, *map(codec.id_column, expect)]))
        stored_rows = {row[0]: row[1:] for row in select_in(self._db, _KNOWN, "d.id", unique)}
        for id, expected in expect.items():
            row = stored_rows.get(codec.id_column(id))
            at = None if row is None else row[2]
            if at != expected:
                raise Conflict(f"{id!r} is at {at or 'no version'}, not at {expected or 'none'}")
        transaction, number, is_late = self._begin(origin)
        if len(versions) > MAX_DOCUMENTS - (number & (MAX_DOCUMENTS - 1)):
            raise ValueError(f"a transaction holds at most {MAX_DOCUMENTS} documents")
        rows = _Rows()
        for stored_id, version in zip(ids, versions, strict=True):
            if self._plan(rows, version, stored_rows.get(stored_id), transaction, number):
                number += 1
        insert = self._db.executemany
        insert("INSERT INTO document VALUES (?, ?, ?, ?)", rows.documents)
        insert("INSERT INTO version VALUES (?, ?, ?, ?, ?, ?)", rows.versions)
        insert("UPDATE document SET head = ? WHERE number = ?", rows.heads)
        insert("DELETE FROM lookup WHERE key = ? AND document = ?", rows.stale_keys)
        insert("INSERT OR IGNORE INTO lookup VALUES (?, ?)", rows.keys)
        if is_late and rows.versions:
            self._db.execute(_COUNT_LATE)
        insert(
            "INSERT OR IGNORE INTO blob VALUES (?, ?, ?, ?)",
            ((bytes.fromhex(digest), *row) for digest, row in blobs.items()),
        )
        return transaction.token

    def _begin(self, origin: Origin | None) -> tuple[Origin, int, bool]:
        if origin is None:
            transaction = self._next_local()
            return transaction, self._insert_tx(transaction) << POSITION_BITS, False
        row = self._db.execute(
            "SELECT seq, time_ms FROM tx WHERE token = ?", (origin.token,)
        ).fetchone()
        if row is None:
            return origin, self._insert_tx(origin) << POSITION_BITS, False
        seq, time_ms = row
        if time_ms != origin.time_ms:
            raise Conflict(f"transaction {origin.token!r} is here with another time")
        first = seq << POSITION_BITS
        (last,) = self._db.execute(
            "SELECT max(number) FROM version WHERE number >= ? AND number < ?",
            (first, first + MAX_DOCUMENTS),
        ).fetchone()
        return origin, first if last is None else last + 1, True

    def _next_local(self) -> Origin:
        (last,) = self._db.execute("SELECT max(time_ms) FROM tx").fetchone()
        (store_id,) = self._db.execute("SELECT value FROM meta WHERE key = 'store_id'").fetchone()
        (seq,) = self._db.execute("SELECT coalesce(max(seq), 0) + 1 FROM tx").fetchone()
        # The clock may have stepped back, or another machine's may be ahead.
        time_ms = self._clock() if last is None else max(self._clock(), last + 1)
        token = Token(f"{store_id}-{seq}")
        if self._db.execute("SELECT 1 FROM tx WHERE token = ?", (token,)).fetchone():
            # A store was restored from a backup, and what it had exported later was imported.
            store_id = new_store_id()
            self._db.execute("UPDATE meta SET value = ? WHERE key = 'store_id'", (store_id,))
            token = Token(f"{store_id}-{seq}")
        return Origin(token, time_ms)

    def _insert_tx(self, transaction: Origin) -> int:
        time_ms, place, token = order_of(transaction)
        seq = self._db.execute(
            "INSERT INTO tx (token, time_ms, place) VALUES (?, ?, ?)", (token, time_ms, place)
        ).lastrowid
        assert seq is not None
        return seq

    def _plan(
        self, rows: _Rows, version: EncodedVersion, known: Any, transaction: Origin, number: int
    ) -> bool:
        if known is None:
            id = codec.id_column(version.id)
            rows.documents.append((number, id, version.type, number))
            rows.versions.append((number, number, *version.columns))
            rows.keys.extend((key, number) for key in version.keys)
            return True
        document, type_, head_token, head_time, *columns = known
        if type_ != version.type:
            raise Conflict(f"{version.id!r} is a {type_} here, not a {version.type}")
        head = codec.decode_fields(version.id, version.type, *columns)
        if head["identity_hash"] != version.identity_hash:
            raise Conflict(f"{version.id!r} has another source here: an identity never changes")
        if order_of(transaction) > order_of(Origin(head_token, head_time)):
            # Look-ups find newest versions only: entries that the new one does not have must go.
            keys = frozenset(codec.lookup_keys(head))
            rows.stale_keys.extend((key, document) for key in keys - version.keys)
            rows.keys.extend((key, document) for key in version.keys - keys)
            rows.heads.append((number, document))
        # Not newer than what is here: imported or fetched late, or written once more.
        elif self._is_repeated(version, document, number):
            return False
        rows.versions.append((number, document, *version.columns))
        return True

    def _is_repeated(self, version: EncodedVersion, document: int, number: int) -> bool:
        first = number >> POSITION_BITS << POSITION_BITS
        row = self._db.execute(
            "SELECT content_hash, view_hash, text_hash, body FROM version"
            " WHERE document = ? AND number >= ? AND number < ?",
            (document, first, first + MAX_DOCUMENTS),
        ).fetchone()
        if row is None:
            return False
        there = codec.decode_fields(version.id, version.type, *row)
        if without_nulls(there) != without_nulls(
            codec.decode_fields(version.id, version.type, *version.columns)
        ):
            raise Conflict(f"{version.id!r} is here with other fields in that transaction")
        return True

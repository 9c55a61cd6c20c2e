"""How versions are read: the statements, and rows as heads."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from foredeck.model.portions import portions
from foredeck.store.fields import LazyFields
from foredeck.store.protocol import Change, Head, Origin, Record, Token
from foredeck.store.sqlite import codec
from foredeck.store.sqlite.schema import POSITION_BITS

CHUNK = 500
"""How many values one `IN (...)` lists."""

COLUMNS = "t.token, t.time_ms, d.id, d.type, v.content_hash, v.view_hash, v.text_hash, v.body"
TX = f"JOIN tx t ON t.seq = v.number >> {POSITION_BITS}"
NEWEST = f"SELECT {COLUMNS} FROM document d JOIN version v ON v.number = d.head {TX}"
HISTORY = f"SELECT {COLUMNS} FROM document d JOIN version v ON v.document = d.number {TX}"
ORDER = "t.time_ms, t.place, t.token"
REVERSED = "t.time_ms DESC, t.place DESC, t.token DESC"
BLOB = "SELECT hash, size, encoding, data FROM blob"
ORIGINS = (
    "SELECT d.id, t.token, t.time_ms FROM lookup l"
    " CROSS JOIN document d ON d.number = l.document"
    f" CROSS JOIN tx t ON t.seq = d.head >> {POSITION_BITS}"
    " WHERE l.key = ? ORDER BY l.document"
)


def changes_of_others(db: sqlite3.Connection) -> int:
    """A number that is another one after each commit of another connection."""
    return int(db.execute("PRAGMA data_version").fetchone()[0])


def select_in(
    db: sqlite3.Connection, select: str, column: str, values: Sequence[Any]
) -> Iterator[Any]:
    """The rows of `select` whose `column` is one of `values`, however many those are."""
    for portion in portions(values, CHUNK):
        marks = ",".join("?" * len(portion))
        yield from db.execute(f"{select} WHERE {column} IN ({marks})", portion)


def lookup_statement(keys: int) -> str:
    """Newest heads that have all of a number of index entries. `CROSS JOIN` keeps SQLite from
    reordering: the entry that is looked up first is the most selective."""
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
    """Digests as stored; what is no SHA-256 names no blob."""
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


def list_origins(db: sqlite3.Connection, type: str, session: str) -> dict[str, Origin]:
    """The transactions of the newest versions of one type and session, oldest document first."""
    rows = db.execute(ORIGINS, (codec.field_key(type, "session", session),))
    return {codec.id_text(id): Origin(Token(token), time_ms) for id, token, time_ms in rows}


def list_changes(db: sqlite3.Connection, first: int, limit: int) -> list[Change]:
    """The versions from a number on, `limit` and what else is of the last one's transaction."""
    last = db.execute(
        "SELECT max(number) FROM (SELECT number FROM version WHERE number >= ?"
        " ORDER BY number LIMIT ?)",
        (first, limit),
    ).fetchone()[0]
    if last is None:
        return []
    rows = db.execute(
        "SELECT t.token, t.time_ms, d.id, d.type FROM version v"
        f" JOIN document d ON d.number = v.document {TX}"
        " WHERE v.number >= ? AND v.number < ? ORDER BY v.number",
        (first, ((last >> POSITION_BITS) + 1) << POSITION_BITS),
    )
    return [
        Change(Token(token), time_ms, codec.id_text(id), type_)
        for token, time_ms, id, type_ in rows
    ]


def list_records(db: sqlite3.Connection, after: int, limit: int) -> list[Record]:
    """The transactions that came in after the one with this number."""
    found = db.execute(
        "SELECT seq, token, time_ms FROM tx WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
    ).fetchall()
    if not found:
        return []
    changes: dict[int, list[tuple[str, str]]] = {seq: [] for seq, _, _ in found}
    rows = db.execute(
        "SELECT v.number, d.id, d.type FROM version v JOIN document d ON d.number = v.document"
        " WHERE v.number >= ? AND v.number < ? ORDER BY v.number",
        (found[0][0] << POSITION_BITS, (found[-1][0] + 1) << POSITION_BITS),
    )
    for number, id, type_ in rows:
        changes[number >> POSITION_BITS].append((codec.id_text(id), type_))
    return [Record(Origin(token, time_ms), tuple(changes[seq])) for seq, token, time_ms in found]


def list_digests(db: sqlite3.Connection, after: str, limit: int) -> list[str]:
    """The digests of blobs after one, in ascending order."""
    rows = db.execute(
        "SELECT hash FROM blob WHERE hash > ? ORDER BY hash LIMIT ?", (bytes.fromhex(after), limit)
    )
    return [row[0].hex() for row in rows]

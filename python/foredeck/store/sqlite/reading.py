"""How versions are read: the statements, rows as heads, and which blobs the versions need."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from foredeck.store.protocol import Advance, Change, Head, Origin, Record, ScanMark, Token, portions
from foredeck.store.references import RECORDS, in_message, references
from foredeck.store.sqlite import codec
from foredeck.store.versions import POSITION_BITS, LazyFields

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
    """Newest heads that have all of a number of index entries, the most selective first."""
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


def late_versions(db: sqlite3.Connection) -> int:
    """How often versions were added to a transaction that was here: whoever looks only at what
    follows a version number does not see those."""
    row = db.execute("SELECT value FROM meta WHERE key = 'late'").fetchone()
    return 0 if row is None else int(row[0])


def list_digests(db: sqlite3.Connection, after: str, limit: int) -> list[str]:
    """The digests of blobs after one, in ascending order."""
    rows = db.execute(
        "SELECT hash FROM blob WHERE hash > ? ORDER BY hash LIMIT ?", (bytes.fromhex(after), limit)
    )
    return [row[0].hex() for row in rows]


BATCH = 500
"""How many versions are held at once."""

Read = Callable[[Iterable[str]], Mapping[str, bytes]]
"""Blobs by hash; those that are missing are left out."""

_VERSIONS = """
SELECT v.number, d.id, d.type, v.content_hash, v.view_hash, v.text_hash, v.body
FROM version v JOIN document d ON d.number = v.document
WHERE v.number > ? ORDER BY v.number"""
_HASH = re.compile(r'"([0-9a-f]{64})"')
_MARK = re.compile(r'"\$(?:text|base64|json)":"[0-9a-f]{64}"')
_WITHOUT = frozenset({"chat", "member"})
"""Types that name no blob but their content: their fields are few and of fixed types."""


def scan_mark_of(db: sqlite3.Connection) -> ScanMark:
    """Where the file ends now."""
    (last,) = db.execute("SELECT max(number) FROM version").fetchone()
    return ScanMark(last or 0, late_versions(db))


def needed_blobs(
    db: sqlite3.Connection,
    read: Read,
    digests: Iterable[str],
    gone: Collection[str],
    advance: Advance,
) -> set[str]:
    """Those of `digests` that documents other than `gone` need, in any version.

    `advance` is called for each `BATCH` of versions. Memory does not grow with the store.
    """
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
    """Whether anything that has come since uses these documents or blobs."""
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
    """Whether a document belongs to a session among `ids` or to a copy of one, or lists one."""
    sessions = (fields.get("session"), fields.get("parent_session"))
    return fields.get("object") in ids or any(f"session:{id}" in ids for id in sessions if id)


def _hashes(text: str) -> set[str]:
    """The strings in a JSON text that may be hashes; an empty one where it has to be parsed."""
    # JSON of others may escape digits and letters; ours never does.
    found = set(_HASH.findall(text))
    return found | {""} if "\\u003" in text or "\\u006" in text else found


class _Search:
    """Moves what it finds from `wanted` to `found`."""

    def __init__(self, read: Read, digests: Iterable[str]) -> None:
        self._read = read
        self.wanted = set(digests)
        self.found: set[str] = set()

    def look(self, rows: Iterable[Any]) -> None:
        """Look at versions: `(id as stored, type, hashes, text hash, body)`."""
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
        """What is searched for, by the messages that name it."""
        found = {}
        for digest, data in self._read(messages).items():
            if data.startswith((b"{", b"[")):
                hashes = _hashes(data.decode(errors="replace"))
                if "" in hashes or not hashes.isdisjoint(self.wanted):
                    found[digest] = in_message(data)
        return found

    def _parse(self, row: Any, holding: Mapping[str, set[str]]) -> None:
        stored, type_, *columns = row
        fields = codec.decode_fields(codec.id_text(stored), type_, *columns)
        named = references(type_, fields)
        self._take(named.messages | named.needed | named.possible)
        for digest in named.messages & holding.keys():
            self._take(holding[digest])

    def _take(self, digests: set[str]) -> None:
        found = self.wanted & digests
        self.found |= found
        self.wanted -= found

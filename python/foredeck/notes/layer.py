"""The layer behind the graph: names, references and tags; meanings are resolved on demand."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.derived.follower import Follower
from foredeck.derived.layer import Layer, reported
from foredeck.model.documents import chat_id
from foredeck.notes.entries import (
    CHUNK,
    NAMING,
    OBJECTS,
    TURN,
    GraphEntry,
    TurnLinks,
    entry_of,
    has_text,
    links_of_turns,
)
from foredeck.notes.parsed import Rank, Reference, keys_of
from foredeck.store.protocol import Advance, Change, Head, portions
from foredeck.store.sqlite.connection import immediate
from foredeck.store.sqlite.rows import select_in
from foredeck.store.store import Store

_TABLES = """
CREATE TABLE object (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, type TEXT, title TEXT, path TEXT,
    gone INTEGER, moved_to INTEGER, markdown INTEGER, kind TEXT, problems TEXT
);
CREATE INDEX object_moved ON object (moved_to) WHERE moved_to IS NOT NULL;
CREATE TABLE name (
    key TEXT NOT NULL, rank INTEGER NOT NULL, text TEXT NOT NULL,
    owner INTEGER NOT NULL, target INTEGER NOT NULL
);
CREATE INDEX name_key ON name (key);
CREATE INDEX name_owner ON name (owner);
CREATE INDEX name_target ON name (target);
CREATE TABLE reference (
    number INTEGER PRIMARY KEY, owner INTEGER NOT NULL, position INTEGER NOT NULL,
    target TEXT, relation TEXT, embed INTEGER, heading TEXT, label TEXT, version INTEGER,
    field TEXT, start INTEGER, "end" INTEGER, style TEXT, part TEXT, version_ref TEXT
);
CREATE TABLE anchor (
    owner INTEGER NOT NULL, key TEXT NOT NULL, PRIMARY KEY (owner, key)
) WITHOUT ROWID;
CREATE INDEX reference_owner ON reference (owner, position);
CREATE TABLE lookup (
    key TEXT NOT NULL, reference INTEGER NOT NULL, PRIMARY KEY (key, reference)
) WITHOUT ROWID;
CREATE INDEX lookup_reference ON lookup (reference);
CREATE TABLE tag (
    owner INTEGER NOT NULL, folded TEXT NOT NULL, name TEXT NOT NULL, field TEXT NOT NULL,
    start INTEGER NOT NULL, "end" INTEGER NOT NULL
);
CREATE INDEX tag_owner ON tag (owner);
CREATE INDEX tag_folded ON tag (folded);
CREATE TABLE unread_turn (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE unread_text (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE attempt (text_hash TEXT PRIMARY KEY, times INTEGER NOT NULL) WITHOUT ROWID;
"""

PORTION = 500
"""Documents held at once."""

LOOKED_UP = 100
"""Documents looked up at once."""

SLICE_S = 0.05
"""Seconds between two looks at the clock."""

ATTEMPTS = 2
"""Unfinished readings after which a text is set aside."""

SMALL_CHARS = 20_000
"""Shorter texts note no attempts."""

TURN_ROOM = 1 << 32
"""A turn's positions begin at its number times this."""

_CLEAR_REFERENCES = (
    "DELETE FROM lookup WHERE reference IN (SELECT number FROM reference "
    "WHERE owner = ? AND position >= ? AND position < ?)",
    "DELETE FROM reference WHERE owner = ? AND position >= ? AND position < ?",
)
_CLEAR = (
    "DELETE FROM name WHERE owner = ?",
    "DELETE FROM tag WHERE owner = ?",
    "DELETE FROM anchor WHERE owner = ?",
)
_DESCRIBE = (
    "UPDATE object SET type = ?, title = ?, path = ?, gone = ?, moved_to = ?, markdown = ?, "
    "kind = ?, problems = ? WHERE number = ?"
)
_REFER = "INSERT INTO reference VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

_NEWEST = "SELECT number, id FROM unread_turn ORDER BY number DESC LIMIT ?"


class NotesLayer(Layer):
    """References of other notes keep the names of what goes."""

    name = "notes"
    version = 6
    tables = tuple(filter(str.strip, _TABLES.split(";")))

    def apply(self, db: sqlite3.Connection, store: Store, changes: Sequence[Change]) -> None:
        """Takes in the newest versions of changed documents."""
        types = OBJECTS | NAMING
        ids = dict.fromkeys(change.id for change in changes if change.type in types)
        for part in portions(ids, PORTION):
            heads = list(store.heads(part).values())
            entries = (
                entry_of(h.id, h.type, h.fields, None)
                for h in heads
                if not has_text(h.type, h.fields)
            )
            write_entries(db, [entry for entry in entries if entry is not None])
            # Notes are anybody's, and reading one may take a while: here only what is to be read
            # is noted, in `read_rest` it is read.
            texts = [(stored(head.id),) for head in heads if has_text(head.type, head.fields)]
            # Again at the end, with a new number: who reads the older version now will not write.
            db.executemany("DELETE FROM unread_text WHERE id = ?", texts)
            db.executemany("INSERT INTO unread_text (id) VALUES (?)", texts)
        # What was said in turns is read once nothing else is new (`read_chats`): messages are the
        # larger part of a store and hold few links.
        turns = ((stored(change.id),) for change in changes if change.type == TURN)
        db.executemany("INSERT OR IGNORE INTO unread_turn (id) VALUES (?)", turns)

    def has_rest(self, db: sqlite3.Connection) -> bool:
        return db.execute("SELECT 1 FROM unread_text LIMIT 1").fetchone() is not None

    def read_rest(self, db: sqlite3.Connection, store: Store) -> None:
        """Reads the rest, newest texts first."""
        until = time.monotonic() + SLICE_S
        newest = "SELECT number, id FROM unread_text ORDER BY number DESC LIMIT ?"
        rows = db.execute(newest, (LOOKED_UP,)).fetchall()
        heads = store.heads(loaded(id) for _, id in rows)
        read: list[tuple[int, GraphEntry | None]] = []
        for number, id in rows:
            head = heads.get(loaded(id))
            read.append((number, None if head is None else _entry(db, store, head)))
            if time.monotonic() > until:
                break
        with immediate(db):
            numbers = [number for number, _ in read]
            remaining = set(select_in(db, "SELECT number FROM unread_text", "number", numbers))
            write_entries(db, [e for number, e in read if (number,) in remaining and e is not None])
            db.executemany("DELETE FROM unread_text WHERE number = ?", [(n,) for n in numbers])


LAYER = NotesLayer()


def read_chats(follower: Follower, store: Store, advance: Advance = lambda: None) -> int:
    """Reads unread turns; returns their number.

    `advance` may raise to stop. Raises `StoreUnavailable` if the file is unusable.
    """
    read = 0
    with reported(follower.path):
        while follower.db.execute(_NEWEST, (1,)).fetchone() is not None:
            with immediate(follower.db):
                # Asked under the lock: other processes read, too. The newest go first: where the
                # time is up, those are there that are asked for most.
                rows = follower.db.execute(_NEWEST, (CHUNK,)).fetchall()
                heads = store.heads(loaded(id) for _, id in rows)
                turns = [head for head in heads.values() if head.type == TURN]
                write_turns(follower.db, list(links_of_turns(store, turns)))
                delete = "DELETE FROM unread_turn WHERE number = ?"
                follower.db.executemany(delete, ((number,) for number, _ in rows))
                read += len(rows)
            advance()
    return read


def write_entries(db: sqlite3.Connection, entries: Sequence[GraphEntry]) -> None:
    """Replaces documents' rows."""
    ids = (id for entry in entries for id in (entry.id, entry.target, entry.moved_to))
    rows = _GraphRows(_ObjectNumbers(db, (id for id in ids if id is not None)))
    for entry in entries:
        rows.add_entry(entry)
    rows.write(db)


def write_turns(db: sqlite3.Connection, turns: Sequence[TurnLinks]) -> None:
    """Replaces turns' links, which are their chats' references."""
    rows = _GraphRows(_ObjectNumbers(db, (chat_id(links.session) for links in turns)))
    for links in turns:
        rows.add_turn(links)
    rows.write(db)


def stored(value: Any) -> Any:
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode(errors="surrogatepass")
    return value


def loaded(value: Any) -> Any:
    """The inverse of `stored`."""
    return value.decode(errors="surrogatepass") if isinstance(value, bytes) else value


def _entry(db: sqlite3.Connection, store: Store, head: Head) -> GraphEntry | None:
    document = None
    if has_text(head.type, head.fields):
        document = store.document(head)
    text = None if document is None else document.content
    if text is None or len(text) <= SMALL_CHARS:
        return entry_of(head.id, head.type, head.fields, text)
    hash = str(head.fields.get("text_hash"))
    row = db.execute("SELECT times FROM attempt WHERE text_hash = ?", (hash,)).fetchone()
    before = 0 if row is None else row[0]
    if before >= ATTEMPTS:
        return entry_of(head.id, head.type, head.fields, text, set_aside=True)
    # A reading that takes too long, or whose process is killed, leaves its attempt behind: the text
    # is set aside then, or every engine would begin and fail with it.
    _note_attempts(db, hash, before + 1)
    entry = entry_of(head.id, head.type, head.fields, text)
    is_cut = entry is not None and entry.markdown is not None and entry.markdown.is_cut
    _note_attempts(db, hash, ATTEMPTS if is_cut else 0)
    return entry


def _note_attempts(db: sqlite3.Connection, text_hash: str, times: int) -> None:
    # On the disk before a reading begins: it may end the process.
    with immediate(db):
        db.execute("INSERT OR REPLACE INTO attempt VALUES (?, ?)", (text_hash, times))


class _ObjectNumbers:
    """Numbers of objects, including merely named ones."""

    def __init__(self, db: sqlite3.Connection, ids: Iterable[str]) -> None:
        unique = list(dict.fromkeys(map(stored, ids)))
        self._numbers: dict[str | bytes, int] = dict(
            select_in(db, "SELECT id, number FROM object", "id", unique)
        )
        (self._last,) = db.execute("SELECT coalesce(max(number), 0) FROM object").fetchone()
        self.new: dict[int, str | bytes] = {}
        """Objects that nothing had named before."""

    def number(self, id: str) -> int:
        """The row of an object."""
        name = stored(id)
        if name not in self._numbers:
            self._last += 1
            self._numbers[name], self.new[self._last] = self._last, name
        return self._numbers[name]


_Row = tuple[Any, ...]


@dataclass(slots=True)
class _GraphRows:
    """Rows to write, in document order."""

    # Collected, so that each table is written in one go: row by row, writing took longer than
    # reading the documents.

    objects: _ObjectNumbers
    emptied: list[_Row] = field(default_factory=list)
    """Objects whose names, tags and anchors go."""
    cut: list[_Row] = field(default_factory=list)
    """Objects whose references go, by range of positions."""
    described: list[_Row] = field(default_factory=list)
    names: list[_Row] = field(default_factory=list)
    references: list[tuple[_Row, Iterable[str]]] = field(default_factory=list)
    """Each with its lookup keys."""
    anchors: list[_Row] = field(default_factory=list)
    tags: list[_Row] = field(default_factory=list)

    def add_entry(self, entry: GraphEntry) -> None:
        """Adds a document's rows."""
        owner = self.objects.number(entry.id)
        if owner not in self.objects.new:
            self.emptied.append((owner,))
            self._cut_references(owner, 0)
        if entry.type in OBJECTS:
            self._describe(owner, entry)
        self._name(owner, entry)
        for position, reference in enumerate(entry.references):
            keys = keys_of(reference, entry.filesystem, entry.path)
            self._refer(owner, position, reference, keys, entry.pins.get(position))
        self.anchors += ((owner, key) for key in sorted(entry.anchors))
        if entry.markdown is not None:
            tags = entry.markdown.tags
            self.tags += ((owner, t.name.casefold(), t.name, t.field, t.start, t.end) for t in tags)

    def add_turn(self, links: TurnLinks) -> None:
        """Adds a turn's rows."""
        owner = self.objects.number(chat_id(links.session))
        self._cut_references(owner, links.number)
        for position, reference in enumerate(links.references, links.number * TURN_ROOM):
            self._refer(owner, position, reference, keys_of(reference, None, None))

    def _cut_references(self, owner: int, turn: int) -> None:
        """Drops a turn's references; 0: those of the object's own fields."""
        self.cut.append((owner, turn * TURN_ROOM, (turn + 1) * TURN_ROOM))

    def _describe(self, number: int, entry: GraphEntry) -> None:
        markdown = entry.markdown
        row = (
            entry.type,
            entry.title,
            entry.path,
            entry.gone,
            None if entry.moved_to is None else self.objects.number(entry.moved_to),
            markdown is not None,
            markdown.kind if markdown else None,
            json.dumps(markdown.problems) if markdown and markdown.problems else None,
        )
        self.described.append((*row, number))

    def _name(self, owner: int, entry: GraphEntry) -> None:
        if entry.target is None:
            return
        target = self.objects.number(entry.target)
        for name in entry.names:
            meant = owner if name.rank == Rank.EXACT else target
            self.names.append((name.key, name.rank, name.text, owner, meant))

    def _refer(
        self,
        owner: int,
        position: int,
        reference: Reference,
        keys: Iterable[str],
        version_ref: Mapping[str, Any] | None = None,
    ) -> None:
        row = (
            *(owner, position, reference.target, reference.relation, reference.embed),
            *(reference.heading, reference.label, reference.version, reference.field),
            *(reference.start, reference.end, reference.style, reference.part),
            None if version_ref is None else json.dumps(version_ref),
        )
        self.references.append((row, keys))

    def write(self, db: sqlite3.Connection) -> None:
        """Writes everything in the open transaction."""
        for statement in _CLEAR:
            db.executemany(statement, self.emptied)
        for statement in _CLEAR_REFERENCES:
            db.executemany(statement, self.cut)
        _write(db, "INSERT INTO object (number, id) VALUES (?, ?)", self.objects.new.items())
        _write(db, _DESCRIBE, self.described)
        _write(db, "INSERT INTO name VALUES (?, ?, ?, ?, ?)", self.names)
        self._write_references(db)
        _write(db, "INSERT OR IGNORE INTO anchor VALUES (?, ?)", self.anchors)
        _write(db, "INSERT INTO tag VALUES (?, ?, ?, ?, ?, ?)", self.tags)

    def _write_references(self, db: sqlite3.Connection) -> None:
        (last,) = db.execute("SELECT coalesce(max(number), 0) FROM reference").fetchone()
        numbered = list(enumerate(self.references, last + 1))
        _write(db, _REFER, ((number, *row) for number, (row, _) in numbered))
        looked_up = ((key, number) for number, (_, keys) in numbered for key in keys)
        _write(db, "INSERT OR IGNORE INTO lookup VALUES (?, ?)", looked_up)


def _write(db: sqlite3.Connection, statement: str, rows: Iterable[Sequence[Any]]) -> None:
    db.executemany(statement, (tuple(map(stored, row)) for row in rows))

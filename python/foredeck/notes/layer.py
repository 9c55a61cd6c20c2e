"""The derived layer behind the graph: names, references and tags of the newest versions.

Every row follows from one document alone. What a reference means follows from all of them, so it is
worked out when it is asked for (`notes/resolving.py`): a link to something unknown resolves once
that appears, and a rename changes nothing but the rows of the two files.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from foredeck.derived.layer import HasToBeMadeAgain
from foredeck.model.documents import chat_id
from foredeck.model.kinds import kind_of
from foredeck.notes.chat import TURN, TurnLinks
from foredeck.notes.entries import NAMING, OBJECTS, GraphEntry, entry_of, has_text
from foredeck.notes.names import Rank, folded, keys_of
from foredeck.notes.parsed import Reference
from foredeck.store.protocol import Change, Head, LocalStore

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
    field TEXT, start INTEGER, "end" INTEGER, style TEXT, pin TEXT
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
"""
TURN_ROOM = 1 << 32
"""What the positions of one turn begin with, times its number: a chat's references are those of its
own fields, below this, and those of each of its turns."""

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


def stored(value: Any) -> Any:
    """A value as SQLite takes it: text with lone surrogates, as paths may have, as bytes."""
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode(errors="surrogatepass")
    return value


def loaded(value: Any) -> Any:
    """The value that `stored` was given."""
    return value.decode(errors="surrogatepass") if isinstance(value, bytes) else value


class NotesLayer:
    """See `foredeck.derived.layer.Layer`."""

    name = "notes"
    version = 4

    def create(self, db: sqlite3.Connection) -> None:
        """Make the tables."""
        for statement in filter(str.strip, _TABLES.split(";")):
            db.execute(statement)

    def take_out(
        self, db: sqlite3.Connection, store: LocalStore, documents: Collection[str]
    ) -> None:
        """See `Layer.take_out`."""
        del db, store, documents
        raise HasToBeMadeAgain("The names of what goes stand in the references of others.")

    def apply(self, db: sqlite3.Connection, store: LocalStore, changes: Sequence[Change]) -> None:
        """Take in the newest versions of the documents that changed."""
        wanted = OBJECTS | NAMING
        ids = dict.fromkeys(change.id for change in changes if change.type in wanted)
        heads = store.heads(ids)
        for id in ids:
            if id in heads and (entry := _entry(store, heads[id])) is not None:
                write_entry(db, entry)
        # What was said in turns is read once nothing else is new: see `chat_reading.py`.
        turns = ((change.id,) for change in changes if change.type == TURN)
        _insert(db, "INSERT OR IGNORE INTO unread_turn (id) VALUES (?)", turns)


LAYER = NotesLayer()


def _entry(store: LocalStore, head: Head) -> GraphEntry | None:
    text = None
    if has_text(head.type, head.fields):
        document = store.get(head.id, kind_of(head.type), head.token)
        text = None if document is None else document.content
    return entry_of(head.id, head.type, head.fields, text)


def write_entry(db: sqlite3.Connection, entry: GraphEntry) -> None:
    """Write the rows of one document in place of those that it had."""
    owner, is_new = _row(db, entry.id)
    if not is_new:
        for statement in _CLEAR:
            db.execute(statement, (owner,))
        _clear_references(db, owner, 0)
    if entry.type in OBJECTS:
        _write_object(db, owner, entry)
    target = owner if entry.target == entry.id else _maybe_number(db, entry.target)
    names = (
        (name.key, name.rank, name.text, owner, owner if name.rank == Rank.EXACT else target)
        for name in entry.names
    )
    if target is not None:
        _insert(db, "INSERT INTO name VALUES (?, ?, ?, ?, ?)", names)
    for position, reference in enumerate(entry.references):
        keys = keys_of(reference, entry.filesystem, entry.path)
        _write_reference(db, owner, position, reference, keys, entry.pins.get(position))
    anchors = ((owner, key) for key in sorted(entry.anchors))
    _insert(db, "INSERT OR IGNORE INTO anchor VALUES (?, ?)", anchors)
    if entry.markdown is not None:
        _insert(
            db,
            "INSERT INTO tag VALUES (?, ?, ?, ?, ?, ?)",
            ((owner, folded(t.name), t.name, t.field, t.start, t.end) for t in entry.markdown.tags),
        )


def _write_object(db: sqlite3.Connection, number: int, entry: GraphEntry) -> None:
    markdown = entry.markdown
    row = (
        entry.type,
        entry.title,
        entry.path,
        entry.gone,
        _maybe_number(db, entry.moved_to),
        markdown is not None,
        markdown.kind if markdown else None,
        json.dumps(markdown.problems) if markdown and markdown.problems else None,
    )
    db.execute(
        "UPDATE object SET type = ?, title = ?, path = ?, gone = ?, moved_to = ?, markdown = ?, "
        "kind = ?, problems = ? WHERE number = ?",
        (*map(stored, row), number),
    )


def write_turn(db: sqlite3.Connection, links: TurnLinks) -> None:
    """Write the links of one turn in place of those that it had: they are its chat's references."""
    owner = _number(db, chat_id(links.session))
    _clear_references(db, owner, links.number)
    for position, reference in enumerate(links.references, links.number * TURN_ROOM):
        _write_reference(db, owner, position, reference, keys_of(reference, None, None))


def _clear_references(db: sqlite3.Connection, owner: int, turn: int) -> None:
    """Drop the references of one turn; with 0 those in an object's own fields."""
    for statement in _CLEAR_REFERENCES:
        db.execute(statement, (owner, turn * TURN_ROOM, (turn + 1) * TURN_ROOM))


def _write_reference(
    db: sqlite3.Connection,
    owner: int,
    position: int,
    reference: Reference,
    keys: Iterable[str],
    pin: Mapping[str, Any] | None = None,
) -> None:
    row = (
        *(owner, position, reference.target, reference.relation, reference.embed),
        *(reference.heading, reference.label, reference.version, reference.field),
        *(reference.start, reference.end, reference.style, _pin(pin)),
    )
    number = db.execute(
        "INSERT INTO reference VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        tuple(map(stored, row)),
    ).lastrowid
    _insert(db, "INSERT OR IGNORE INTO lookup VALUES (?, ?)", ((key, number) for key in keys))


def _pin(pin: Mapping[str, Any] | None) -> str | None:
    return None if pin is None else json.dumps(pin)


def _insert(db: sqlite3.Connection, statement: str, rows: Iterable[Sequence[Any]]) -> None:
    # Most documents have no rows in most tables.
    if prepared := [tuple(map(stored, row)) for row in rows]:
        db.executemany(statement, prepared)


def _maybe_number(db: sqlite3.Connection, id: str | None) -> int | None:
    return None if id is None else _number(db, id)


def _number(db: sqlite3.Connection, id: str) -> int:
    """The row of an object, known or, so far, only named."""
    return _row(db, id)[0]


def _row(db: sqlite3.Connection, id: str) -> tuple[int, bool]:
    """As `_number`, and whether nothing had named the object before."""
    name = stored(id)
    row = db.execute("SELECT number FROM object WHERE id = ?", (name,)).fetchone()
    if row is not None:
        return int(row[0]), False
    made = db.execute("INSERT INTO object (id) VALUES (?)", (name,)).lastrowid
    assert made is not None
    return made, True

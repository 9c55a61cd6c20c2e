"""The derived layer behind the graph: names, references and tags of the newest versions.

Every row follows from one document alone. What a reference means follows from all of them, so it is
worked out when it is asked for (`notes/resolving.py`): a link to something unknown resolves once
that appears, and a rename changes nothing but the rows of the two files.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

from foredeck.derived.layer import HasToBeMadeAgain
from foredeck.model.kinds import kind_of
from foredeck.model.portions import portions
from foredeck.notes.chat import TURN
from foredeck.notes.entries import NAMING, OBJECTS, GraphEntry, entry_of, has_text
from foredeck.notes.rows import stored, write_entries
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

PORTION = 500
"""Documents of which what was read is held at once."""


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
        for part in portions(ids, PORTION):
            heads = store.heads(part)
            entries = (_entry(store, heads[id]) for id in part if id in heads)
            write_entries(db, [entry for entry in entries if entry is not None])
        # What was said in turns is read once nothing else is new: see `chat_reading.py`.
        turns = ((stored(change.id),) for change in changes if change.type == TURN)
        db.executemany("INSERT OR IGNORE INTO unread_turn (id) VALUES (?)", turns)


LAYER = NotesLayer()


def _entry(store: LocalStore, head: Head) -> GraphEntry | None:
    text = None
    if has_text(head.type, head.fields):
        document = store.get(head.id, kind_of(head.type), head.token)
        text = None if document is None else document.content
    return entry_of(head.id, head.type, head.fields, text)

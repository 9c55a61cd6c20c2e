"""The derived layer behind the graph: names, references and tags of the newest versions.

Every row follows from one document alone. What a reference means follows from all of them, so it is
worked out when it is asked for (`notes/resolving.py`): a link to something unknown resolves once
that appears, and a rename changes nothing but the rows of the two files.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Sequence

from foredeck.derived.layer import HasToBeMadeAgain
from foredeck.model.kinds import kind_of
from foredeck.model.portions import portions
from foredeck.notes.chat import TURN
from foredeck.notes.entries import NAMING, OBJECTS, GraphEntry, entry_of, has_text
from foredeck.notes.rows import loaded, stored, write_entries
from foredeck.store.protocol import Change, Head, LocalStore
from foredeck.store.sqlite.connection import immediate
from foredeck.store.sqlite.reading import select_in

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
    field TEXT, start INTEGER, "end" INTEGER, style TEXT, part TEXT, pin TEXT
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
"""Documents of which what was read is held at once."""

LOOKED_UP = 100
"""Documents that are looked up at once to be read."""

SLICE_S = 0.05
"""Texts are read for so long between two looks at the clock: at least one."""

ATTEMPTS = 2
"""A text of which so many readings were begun and none was finished is set aside."""

SMALL_CHARS = 20_000
"""Of a text up to this length no attempt is noted."""


class NotesLayer:
    """See `foredeck.derived.layer.Layer`.

    Notes are anybody's, and reading one may take a while. So taking in a version only notes that
    its text is to be read. A text of which readings were begun and never finished, because it took
    too long or the process was killed, is set aside by its hash.
    """

    name = "notes"
    version = 6

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
            heads = list(store.heads(part).values())
            entries = (entry_of(h.id, h.type, h.fields, None) for h in heads if not _has_text(h))
            write_entries(db, [entry for entry in entries if entry is not None])
            texts = [(stored(head.id),) for head in heads if _has_text(head)]
            # Again at the end, with a new number: who reads the older version now will not write.
            db.executemany("DELETE FROM unread_text WHERE id = ?", texts)
            db.executemany("INSERT INTO unread_text (id) VALUES (?)", texts)
        # What was said in turns is read once nothing else is new: see `chat_reading.py`.
        turns = ((stored(change.id),) for change in changes if change.type == TURN)
        db.executemany("INSERT OR IGNORE INTO unread_turn (id) VALUES (?)", turns)

    def has_rest(self, db: sqlite3.Connection) -> bool:
        """See `Layer.has_rest`."""
        return db.execute("SELECT 1 FROM unread_text LIMIT 1").fetchone() is not None

    def read_rest(self, db: sqlite3.Connection, store: LocalStore) -> int:
        """See `Layer.read_rest`. The newest texts go first."""
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
            left = set(select_in(db, "SELECT number FROM unread_text", "number", numbers))
            write_entries(db, [e for number, e in read if (number,) in left and e is not None])
            db.executemany("DELETE FROM unread_text WHERE number = ?", [(n,) for n in numbers])
        return len(read)


LAYER = NotesLayer()


def _has_text(head: Head) -> bool:
    return has_text(head.type, head.fields)


def _entry(db: sqlite3.Connection, store: LocalStore, head: Head) -> GraphEntry | None:
    document = store.get(head.id, kind_of(head.type), head.token) if _has_text(head) else None
    text = None if document is None else document.content
    if text is None or len(text) <= SMALL_CHARS:
        return entry_of(head.id, head.type, head.fields, text)
    hash = str(head.fields.get("text_hash"))
    row = db.execute("SELECT times FROM attempt WHERE text_hash = ?", (hash,)).fetchone()
    before = 0 if row is None else row[0]
    if before >= ATTEMPTS:
        return entry_of(head.id, head.type, head.fields, text, set_aside=True)
    _note_attempts(db, hash, before + 1)
    entry = entry_of(head.id, head.type, head.fields, text)
    is_cut = entry is not None and entry.markdown is not None and entry.markdown.is_cut
    _note_attempts(db, hash, ATTEMPTS if is_cut else 0)
    return entry


def _note_attempts(db: sqlite3.Connection, text_hash: str, times: int) -> None:
    """On the disk before a reading begins: it may end the process."""
    with immediate(db):
        db.execute("INSERT OR REPLACE INTO attempt VALUES (?, ?)", (text_hash, times))

"""The full-text layer: its tables, and how it takes in changes."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from foredeck.derived.layer import (
    ABSENT_TABLE,
    HasToBeMadeAgain,
    Layer,
    brought_portions,
    note_absent,
)
from foredeck.errors import Missing
from foredeck.model.names import UNSPACED_MARKS
from foredeck.search.texts import SEARCHED, Fetched, SearchedText, texts_of
from foredeck.search.writing import (
    IndexedContent,
    Notable,
    SearchWriter,
    Vocabulary,
    content_of,
    encodable,
    key_of_text,
    uses_by_name,
)
from foredeck.store.protocol import Change, Head, Token, portions
from foredeck.store.store import Store

CHUNK = 100
"""Versions whose texts are held at once."""

_TAKEN_IN = SEARCHED | {"session", "member"}

VERSION = 11
"""Of the tables and their content."""

_STATEMENTS = (
    # Sessions, paths and roles, which many rows share, are kept once.
    "CREATE TABLE name (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",
    # One row for each text. `newest` is 0 for an older version of a file or a task, and -1 for what
    # the user has taken out.
    """CREATE TABLE entry (
        id INTEGER PRIMARY KEY, key INTEGER NOT NULL UNIQUE, document TEXT NOT NULL,
        token TEXT NOT NULL, part TEXT NOT NULL, type INTEGER NOT NULL, role INTEGER NOT NULL,
        status INTEGER, session INTEGER, path INTEGER, message TEXT, turn INTEGER,
        time_ms INTEGER NOT NULL, newest INTEGER NOT NULL, task INTEGER)""",
    "CREATE INDEX entry_session ON entry (session, id)",
    "CREATE INDEX entry_task ON entry (task) WHERE task IS NOT NULL",
    "CREATE INDEX entry_file ON entry (document) WHERE session IS NULL",
    # Without a copy of the texts (`content = ''`): passages are read from the store.
    """CREATE VIRTUAL TABLE content USING fts5(
        said, output, parts, path, content = '', 
        tokenize = "porter unicode61 tokenchars '"""
    + UNSPACED_MARKS
    + """'")""",
    # Distinct identifiers and paths, with a trigram index, so that a piece of one finds it. `uses`
    # counts the entries with the name, so that it goes with the last of them.
    """CREATE TABLE identifier (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, uses INTEGER NOT NULL)""",
    """CREATE VIRTUAL TABLE identifier_part USING fts5(
        name, content = 'identifier', content_rowid = 'id', tokenize = 'trigram', detail = 'none')
    """,
    "CREATE TABLE folder (session INTEGER PRIMARY KEY, cwd TEXT NOT NULL)",
    """CREATE TABLE met (document TEXT NOT NULL, session INTEGER NOT NULL,
        PRIMARY KEY (document, session)) WITHOUT ROWID""",
    # Versions whose texts another machine's database still has: they are tried again.
    ABSENT_TABLE,
    # Larger pieces are written at once, so that fewer have to be merged later.
    "INSERT INTO content (content, rank) VALUES ('hashsize', 16777216)",
)


class SearchLayer(Layer):
    """The search layer."""

    name = "search"
    version = VERSION
    tables = _STATEMENTS

    def __init__(self) -> None:
        # Shared between batches: most words of a batch were met in those before.
        self._vocabulary = Vocabulary()

    def apply(self, db: sqlite3.Connection, store: Store, changes: Sequence[Change]) -> None:
        writer = SearchWriter(db, self._vocabulary)
        for heads in brought_portions(db, store, changes, _TAKEN_IN):
            fetched = Fetched(store, (head for head in heads if head.type in SEARCHED))
            for head in heads:  # one after the other: numbers must not depend on the chunks
                _place(writer, head)
                writer.add(_texts(db, head, fetched))
        writer.finish()

    def take_out(self, db: sqlite3.Connection, store: Store, documents: Collection[str]) -> None:
        take_out(db, store, documents, self._vocabulary)


def _texts(db: sqlite3.Connection, head: Head, fetched: Fetched) -> list[SearchedText]:
    # One version that cannot be read must not keep all others from being found.
    try:
        return texts_of(head, fetched)
    except Missing:  # erased, or still in another machine's database, which is away
        note_absent(db, head)
    except (LookupError, TypeError, ValueError):  # no message that anybody can read
        pass
    return []


def _place(writer: SearchWriter, head: Head) -> None:
    fields = head.fields
    if head.type == "session":
        writer.place(fields["session_id"], fields.get("cwd") or "")
    elif head.type == "member" and fields.get("object_type") == "file":
        writer.meet(fields["object"], fields["session"])
    elif head.type in ("observation", "reflection"):
        if fields.get("is_edited") or fields.get("text_hash") is None:
            writer.supersede(head.id, head.token)
    elif head.type == "memory":
        if fields.get("session"):
            writer.meet(head.id, fields["session"])
    elif head.type == "task":
        # It belongs to the sessions that have made, claimed or changed it, and so to their project.
        for session in (fields.get("session"), (fields.get("provenance") or {}).get("origin")):
            if session:
                writer.meet(head.id, session)


# What is erased leaves the index


_OF_SESSION = "session:"

_ENTRIES = """
SELECT e.id, e.key, e.document, e.token, n.text FROM entry e LEFT JOIN name n ON n.id = e.path
WHERE e.document IN (SELECT value FROM json_each(?)) ORDER BY e.id"""

_OUT_OF_CONTENT = """
INSERT INTO content (content, rowid, said, output, parts, path) VALUES ('delete', ?, ?, ?, ?, ?)"""

_UNUSED_NAMES = """
DELETE FROM name WHERE id NOT IN (
    SELECT type FROM entry UNION SELECT role FROM entry
    UNION SELECT ifnull(status, 0) FROM entry UNION SELECT ifnull(session, 0) FROM entry
    UNION SELECT ifnull(path, 0) FROM entry UNION SELECT ifnull(task, 0) FROM entry
    UNION SELECT session FROM folder UNION SELECT session FROM met)"""


@dataclass(frozen=True, slots=True)
class _Row:
    """An entry that goes."""

    id: int
    key: int
    document: str
    token: Token
    path: str | None


def take_out(
    db: sqlite3.Connection, store: Store, documents: Collection[str], vocabulary: Vocabulary
) -> None:
    """Raises `HasToBeMadeAgain` if a text differs from what was indexed."""
    id_by_key = {encodable(id): id for id in documents}
    ids = json.dumps([*id_by_key])
    rows = [_Row(id, *rest) for id, *rest in db.execute(_ENTRIES, (ids,))]
    used: Counter[Notable] = Counter()
    for portion in portions(rows, CHUNK):
        contents = list(_contents(store, portion, id_by_key, vocabulary))
        numbered = zip(portion, contents, strict=True)
        db.executemany(_OUT_OF_CONTENT, [(row.id, *content.columns) for row, content in numbered])
        for content in contents:
            used.update(content.notable)
    db.executemany("DELETE FROM entry WHERE id = ?", [(row.id,) for row in rows])
    _release_identifiers(db, used)
    _release_names(db, ids, [id for id in documents if id.startswith(_OF_SESSION)])
    # Merged into one piece: older pieces of a full-text index keep the words of what was deleted
    # later, and a purged text must not be found in the file.
    for table in ("content", "identifier_part"):
        db.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")


def _contents(
    store: Store, rows: list[_Row], known: dict[str, str], vocabulary: Vocabulary
) -> Iterator[IndexedContent]:
    heads = [_head(store, known[row.document], row.token) for row in rows]
    fetched = Fetched(store, heads)
    for row, head in zip(rows, heads, strict=True):
        # A file that was renamed is indexed under the path that it had.
        yield content_of(replace(_text(row, head, fetched), path=row.path), vocabulary)


def _head(store: Store, id: str, token: Token) -> Head:
    head = store.head(id, token)
    if head is None:
        raise HasToBeMadeAgain(f"there is no version {token} of {id}")
    return head


def _text(row: _Row, head: Head, fetched: Fetched) -> SearchedText:
    try:
        match = next((t for t in texts_of(head, fetched) if key_of_text(t) == row.key), None)
    except (Missing, LookupError, TypeError, ValueError) as error:
        raise HasToBeMadeAgain(f"{head.id} cannot be read") from error
    if match is None:
        raise HasToBeMadeAgain(f"{head.id} reads otherwise than it did")
    return match


def _release_identifiers(db: sqlite3.Connection, used: Mapping[Notable, int]) -> None:
    db.executemany(
        "UPDATE identifier SET uses = uses - ? WHERE name = ?",
        [(count, name) for name, count in uses_by_name(used).items()],
    )
    db.execute(
        "INSERT INTO identifier_part (identifier_part, rowid, name)"
        " SELECT 'delete', id, name FROM identifier WHERE uses <= 0"
    )
    db.execute("DELETE FROM identifier WHERE uses <= 0")


def _release_names(db: sqlite3.Connection, ids: str, sessions: list[str]) -> None:
    names = json.dumps([encodable(id.removeprefix(_OF_SESSION)) for id in sessions])
    where = "IN (SELECT id FROM name WHERE text IN (SELECT value FROM json_each(?)))"
    db.execute(f"DELETE FROM folder WHERE session {where}", (names,))
    db.execute(f"DELETE FROM met WHERE session {where}", (names,))
    db.execute("DELETE FROM met WHERE document IN (SELECT value FROM json_each(?))", (ids,))
    db.execute(
        "DELETE FROM absent WHERE CAST(document AS TEXT) IN (SELECT value FROM json_each(?))",
        (ids,),
    )
    db.execute(_UNUSED_NAMES)


LAYER = SearchLayer()

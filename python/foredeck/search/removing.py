"""Documents that are to be erased, out of the full-text index: while the store still has them.

The index holds no texts, so an entry can only be taken out with the text that it was made of.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from foredeck.derived.layer import HasToBeMadeAgain
from foredeck.errors import Missing
from foredeck.model.portions import portions
from foredeck.search.fetching import Fetched
from foredeck.search.texts import SearchedText, texts_of
from foredeck.search.tokens import Notable, Vocabulary
from foredeck.search.writing import IndexedContent, content_of, encodable, key_of_text, uses_by_name
from foredeck.store.protocol import Head, LocalStore, Token

_CHUNK = 100
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
    db: sqlite3.Connection,
    store: LocalStore,
    documents: Collection[str],
    vocabulary: Vocabulary,
) -> None:
    """Take these documents out, in the open transaction, and merge what is left in one piece, since
    older pieces of a full-text index keep the words of what was deleted later.

    Raises `HasToBeMadeAgain` where a text is not what was indexed.
    """
    known = {encodable(id): id for id in documents}
    ids = json.dumps([*known])
    rows = [_Row(id, *rest) for id, *rest in db.execute(_ENTRIES, (ids,))]
    used: Counter[Notable] = Counter()
    for portion in portions(rows, _CHUNK):
        contents = list(_contents(store, portion, known, vocabulary))
        numbered = zip(portion, contents, strict=True)
        db.executemany(_OUT_OF_CONTENT, [(row.id, *content.columns) for row, content in numbered])
        for content in contents:
            used.update(content.notable)
    db.executemany("DELETE FROM entry WHERE id = ?", [(row.id,) for row in rows])
    _release_identifiers(db, used)
    _release_names(db, ids, [id for id in documents if id.startswith(_OF_SESSION)])
    for table in ("content", "identifier_part"):
        db.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")


def _contents(
    store: LocalStore, rows: list[_Row], known: dict[str, str], vocabulary: Vocabulary
) -> Iterator[IndexedContent]:
    """What the entries were made of, one for each."""
    heads = [_head(store, known[row.document], row.token) for row in rows]
    fetched = Fetched(store, heads)
    for row, head in zip(rows, heads, strict=True):
        # A file that was renamed is indexed under the path that it had.
        yield content_of(replace(_text(row, head, fetched), path=row.path), vocabulary)


def _head(store: LocalStore, id: str, token: Token) -> Head:
    head = store.head(id, token)
    if head is None:
        raise HasToBeMadeAgain(f"there is no version {token} of {id}")
    return head


def _text(row: _Row, head: Head, fetched: Fetched) -> SearchedText:
    try:
        found = next((t for t in texts_of(head, fetched) if key_of_text(t) == row.key), None)
    except (Missing, LookupError, TypeError, ValueError) as error:
        raise HasToBeMadeAgain(f"{head.id} cannot be read") from error
    if found is None:
        raise HasToBeMadeAgain(f"{head.id} reads otherwise than it did")
    return found


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
    """`ids`: of all documents that go, as JSON."""
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

"""Texts into the tables of the full-text layer."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable

from foredeck.search.secrets import mask_secrets
from foredeck.search.texts import SearchedText
from foredeck.search.tokens import LONGEST, SHORTEST, Vocabulary

_ENTRY = "INSERT OR IGNORE INTO entry VALUES (" + ", ".join("?" * 14) + ")"
_CONTENT = "INSERT INTO content (rowid, said, output, parts, path) VALUES (?, ?, ?, ?, ?)"


class SearchWriter:
    """Writes texts into the open transaction of a database. Made for one batch.

    `vocabulary` is only a memory of words seen, and may be shared between batches.
    """

    def __init__(self, db: sqlite3.Connection, vocabulary: Vocabulary) -> None:
        self._db = db
        self._vocabulary = vocabulary
        self._names: dict[str, int] = {}
        self._identifiers: dict[str, None] = {}
        (last,) = db.execute("SELECT max(id) FROM entry").fetchone()
        self._next = (last or 0) + 1

    def add(self, texts: Iterable[SearchedText]) -> None:
        """Add texts, each once, in this order."""
        rows = [row for text in texts if (row := self._row(text)) is not None]
        self._db.executemany(_CONTENT, rows)

    def finish(self) -> None:
        """Write what was collected: distinct identifiers, found by a piece of them."""
        for name in self._identifiers:
            added = self._db.execute("INSERT OR IGNORE INTO identifier (name) VALUES (?)", (name,))
            if added.rowcount:
                self._db.execute(
                    "INSERT INTO identifier_part (rowid, name) VALUES (?, ?)",
                    (added.lastrowid, name),
                )
        self._identifiers.clear()

    def meet(self, document: str, session: str) -> None:
        """A session has met a file."""
        row = (document, self.name(session))
        self._db.execute("INSERT OR IGNORE INTO met VALUES (?, ?)", row)

    def place(self, session: str, cwd: str) -> None:
        """A session works in a folder."""
        row = (self.name(session), cwd)
        self._db.execute("INSERT OR REPLACE INTO folder VALUES (?, ?)", row)

    def name(self, text: str) -> int:
        """The number of a shared name."""
        text = _encodable(text)
        if (known := self._names.get(text)) is not None:
            return known
        self._db.execute("INSERT OR IGNORE INTO name (text) VALUES (?)", (text,))
        row = self._db.execute("SELECT id FROM name WHERE text = ?", (text,)).fetchone()
        self._names[text] = int(row[0])
        return self._names[text]

    def _row(self, text: SearchedText) -> tuple[int, str, str, str, str] | None:
        """The row of the index for a text; None where it is there already."""
        id = self._next
        added = self._db.execute(_ENTRY, (id, _key(text), *self._fields(text)))
        if text.type == "file":
            self._mark_newest(text)
        if not added.rowcount:
            return None
        self._next += 1
        said = mask_secrets(_encodable(text.said))
        output = mask_secrets(_encodable(text.output))
        path = _encodable(text.path or "")
        names = self._vocabulary.names(f"{path} {said} {output}")
        for name, _parts in names:
            if SHORTEST <= len(name) <= LONGEST:
                self._identifiers[name] = None
        return id, said, output, " ".join(parts for _name, parts in names if parts), path

    def _fields(self, text: SearchedText) -> tuple[object, ...]:
        def name(value: str | None) -> int | None:
            return None if value is None else self.name(value)

        return (
            _encodable(text.document),
            text.token,
            text.part,
            name(text.type),
            name(text.role),
            name(text.status),
            name(text.session),
            name(text.path),
            text.message,
            text.turn,
            text.time_ms,
            1,
        )

    def _mark_newest(self, text: SearchedText) -> None:
        """Of the versions of a file the latest is the newest, whenever it came; a content that it
        had before counts as of the time when it last had it."""
        document = _encodable(text.document)
        self._db.execute(
            "UPDATE entry SET time_ms = max(time_ms, ?) WHERE key = ?", (text.time_ms, _key(text))
        )
        self._db.execute(
            "UPDATE entry SET newest = (id = (SELECT id FROM entry WHERE document = ?1"
            " AND session IS NULL ORDER BY time_ms DESC, id DESC LIMIT 1))"
            " WHERE document = ?1 AND session IS NULL",
            (document,),
        )


def _key(text: SearchedText) -> int:
    """What tells texts apart, in 64 bits: one text of one document is indexed once."""
    name = "\0".join((text.document, text.part, text.digest)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big", signed=True)


def _encodable(text: str) -> str:
    """The text without lone surrogates, which SQLite cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text

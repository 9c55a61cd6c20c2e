"""The rows of the graph's layer: collected, so that each table is written in one go.

Row by row, writing took longer than reading the documents.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.model.documents import chat_id
from foredeck.notes.chat import TurnLinks
from foredeck.notes.entries import OBJECTS, GraphEntry
from foredeck.notes.names import Rank, folded, keys_of
from foredeck.notes.parsed import Reference
from foredeck.store.sqlite.reading import select_in

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
_DESCRIBE = (
    "UPDATE object SET type = ?, title = ?, path = ?, gone = ?, moved_to = ?, markdown = ?, "
    "kind = ?, problems = ? WHERE number = ?"
)
_REFER = "INSERT INTO reference VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


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


def write_entries(db: sqlite3.Connection, entries: Sequence[GraphEntry]) -> None:
    """Write the rows of documents in place of those that they had."""
    named = (id for entry in entries for id in (entry.id, entry.target, entry.moved_to))
    rows = _GraphRows(_ObjectNumbers(db, (id for id in named if id is not None)))
    for entry in entries:
        rows.add_entry(entry)
    rows.write(db)


def write_turns(db: sqlite3.Connection, turns: Sequence[TurnLinks]) -> None:
    """Write the links of turns in place of those that they had: they are their chats'
    references."""
    rows = _GraphRows(_ObjectNumbers(db, (chat_id(links.session) for links in turns)))
    for links in turns:
        rows.add_turn(links)
    rows.write(db)


class _ObjectNumbers:
    """The numbers of objects, also of those that, so far, are only named."""

    def __init__(self, db: sqlite3.Connection, ids: Iterable[str]) -> None:
        wanted = list(dict.fromkeys(map(stored, ids)))
        self._numbers: dict[str | bytes, int] = dict(
            select_in(db, "SELECT id, number FROM object", "id", wanted)
        )
        (self._last,) = db.execute("SELECT coalesce(max(number), 0) FROM object").fetchone()
        self.new: dict[int, str | bytes] = {}
        """Ids of the objects that nothing had named before, by their numbers."""

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
    """What is to be written. Every table gets its rows in the order of the documents."""

    objects: _ObjectNumbers
    emptied: list[_Row] = field(default_factory=list)
    """Objects whose names, tags and anchors go."""
    cut: list[_Row] = field(default_factory=list)
    """Objects whose references go, from one position to another."""
    described: list[_Row] = field(default_factory=list)
    names: list[_Row] = field(default_factory=list)
    references: list[tuple[_Row, Iterable[str]]] = field(default_factory=list)
    """Each with the keys under which it is looked up."""
    anchors: list[_Row] = field(default_factory=list)
    tags: list[_Row] = field(default_factory=list)

    def add_entry(self, entry: GraphEntry) -> None:
        """Add the rows of one document."""
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
            self.tags += ((owner, folded(t.name), t.name, t.field, t.start, t.end) for t in tags)

    def add_turn(self, links: TurnLinks) -> None:
        """Add the rows of one turn."""
        owner = self.objects.number(chat_id(links.session))
        self._cut_references(owner, links.number)
        for position, reference in enumerate(links.references, links.number * TURN_ROOM):
            self._refer(owner, position, reference, keys_of(reference, None, None))

    def _cut_references(self, owner: int, turn: int) -> None:
        """Drop the references of one turn; with 0 those in an object's own fields."""
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
        pin: Mapping[str, Any] | None = None,
    ) -> None:
        row = (
            *(owner, position, reference.target, reference.relation, reference.embed),
            *(reference.heading, reference.label, reference.version, reference.field),
            *(reference.start, reference.end, reference.style, reference.part),
            None if pin is None else json.dumps(pin),
        )
        self.references.append((row, keys))

    def write(self, db: sqlite3.Connection) -> None:
        """Write all of it, in the open transaction."""
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

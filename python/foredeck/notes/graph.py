"""The graph of references among objects."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.notes.layer import TURN_ROOM, loaded, stored
from foredeck.notes.named_parts import anchor_key
from foredeck.notes.parsed import Reference
from foredeck.notes.resolving import (
    ReferenceRow,
    Resolution,
    references_at,
    references_of,
    resolve,
    resolve_word,
)
from foredeck.store.protocol import Head, portions
from foredeck.store.sqlite.rows import select_in
from foredeck.store.store import Store

STEP = 500
"""Objects read at a time."""

_NODES = "SELECT number, id, type, title, path, gone FROM object"


@dataclass(frozen=True, slots=True)
class Node:
    """A node. `gone`: deleted, but still referred to."""

    id: str
    type: str
    title: str
    path: str | None
    gone: bool = False

    def as_json(self) -> dict[str, Any]:
        """The node for programs."""
        return {"id": self.id, "type": self.type, "title": self.title, "path": self.path}


@dataclass(frozen=True, slots=True)
class Edge:
    """A reference; a static one may have a `version_ref`."""

    source: str
    target: str
    reference: Reference
    version_ref: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """The edge for programs."""
        reference = self.reference
        return {
            "from": self.source,
            "to": self.target,
            "relation": reference.relation,
            "static": reference.static,
            "field": reference.field,
            "start": reference.start,
            "end": reference.end,
        }


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A reference to nothing known, or to several objects."""

    source: Node
    reference: Reference
    candidates: list[Node]


@dataclass(frozen=True, slots=True)
class MissingHeading:
    """A reference to a missing heading or block."""

    source: Node
    reference: Reference
    target: Node


@dataclass(frozen=True, slots=True)
class Selection:
    """Edges and nodes to follow; an empty set allows all."""

    types: frozenset[str] = frozenset()
    relations: frozenset[str] = frozenset()
    tag: str | None = None


EVERYTHING = Selection()


@dataclass(slots=True)
class Neighbourhood:
    """Nodes by distance, with their edges; `complete`: none was cut."""

    nodes: list[tuple[Node, int]] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    complete: bool = True


class Graph:
    """Answers questions on an up-to-date layer."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def node(self, id: str) -> Node | None:
        row = self._db.execute(_NODES + " WHERE id = ?", (stored(id),)).fetchone()
        return None if row is None or row[2] is None else _node(row)

    def backlinks(self, id: str) -> list[Edge]:
        """References to an object, by their paths."""
        number = self._number(id)
        if number is None:
            return []
        resolutions = _single(resolve(self._db, references_at(self._db, {number})))
        return self._edges([r for r in resolutions if r.target == number])

    def links(self, id: str) -> list[Edge]:
        """An object's resolved references, in text order."""
        number = self._number(id)
        rows = references_of(self._db, [] if number is None else [number])
        return self._edges(_single(resolve(self._db, rows)))

    def neighbours(
        self, id: str, depth: int = 1, selection: Selection = EVERYTHING, limit: int = 1000
    ) -> Neighbourhood:
        """Nodes within `depth` references, either way; the nearest `limit`."""
        start = self._number(id)
        if start is None:
            return Neighbourhood()
        distance = {start: 0}
        edges: dict[int, Resolution] = {}
        resolved: dict[int, Resolution] = {}
        complete, ring = True, {start}
        for step in range(1, depth + 1):
            around = self._touching(ring, resolved)
            if selection.relations:
                around = [r for r in around if r.row.reference.relation in selection.relations]
            edges.update((r.row.number, r) for r in around)
            ends = {n for r in around for n in (r.row.owner, r.targets[0])} - distance.keys()
            ring = self._selected(ends, selection)
            if len(distance) + len(ring) > limit:
                near = sorted(self._nodes(ring).items(), key=lambda item: _place(item[1]))
                ring = {number for number, _ in near[: limit - len(distance)]}
                complete = False
            distance.update(dict.fromkeys(ring, step))
            if not ring or not complete:
                break
        between = [
            r for r in edges.values() if r.row.owner in distance and r.targets[0] in distance
        ]
        nodes = self._nodes(distance)
        order = sorted(distance, key=lambda n: (distance[n], _place(nodes[n])))
        return Neighbourhood(
            [(nodes[n], distance[n]) for n in order], self._edges(between), complete
        )

    def markdown(self, tag: str | None = None) -> list[tuple[Node, str | None]]:
        """Existing Markdown files by path, with property `kind`."""
        rows = self._db.execute(
            "SELECT number, id, type, title, path, gone, kind FROM object "
            "WHERE markdown AND NOT gone"
        )
        chosen = None if tag is None else self._with_tag(tag)
        selected = (row for row in rows if chosen is None or row[0] in chosen)
        pairs = [(_node(row[:6]), loaded(row[6])) for row in selected]
        return sorted(pairs, key=lambda item: _place(item[0]))

    def tags(self) -> list[tuple[str, int]]:
        """Tags as first written, with file counts."""
        rows = self._db.execute(
            "SELECT folded, min(name), count(DISTINCT owner) FROM tag GROUP BY folded"
        )
        counts = [(loaded(folded_), loaded(name), count) for folded_, name, count in rows]
        return [(name, count) for _, name, count in sorted(counts)]

    def tags_of(self, id: str) -> list[str]:
        """A file's unique tags in order."""
        rows = self._db.execute(
            "SELECT name FROM tag WHERE owner = ? ORDER BY start", (self._number(id),)
        )
        return list(dict.fromkeys(loaded(row[0]) for row in rows))

    def orphans(self) -> set[str]:
        """Ids of Markdown files that no other refers to."""
        alone = {row[0] for row in self._markdown_numbers()}
        for resolutions in self._all_references():
            alone -= {r.targets[0] for r in resolutions if r.target not in (None, r.row.owner)}
        return {node.id for node in self._nodes(alone).values()}

    def unresolved(self) -> Iterator[Unresolved]:
        """Unresolved and ambiguous references of Markdown files."""
        for resolutions in self._all_references():
            yield from self._unresolved(resolutions)

    def unresolved_in(self, id: str) -> list[Unresolved]:
        """People's unresolved and ambiguous references."""
        number = self._number(id)
        resolutions = resolve(self._db, references_of(self._db, [] if number is None else [number]))
        by_people = [r for r in resolutions if r.row.reference.style != "id"]
        return list(self._unresolved(by_people))

    def _unresolved(self, found: Iterable[Resolution]) -> Iterator[Unresolved]:
        loose = [r for r in found if r.target is None]
        nodes = self._nodes({n for r in loose for n in (r.row.owner, *r.targets)})
        for r in loose:
            candidates = sorted((nodes[n] for n in r.targets), key=_place)
            yield Unresolved(nodes[r.row.owner], r.row.reference, candidates)

    def missing_headings(self) -> Iterator[MissingHeading]:
        """References to missing headings and blocks."""
        for resolutions in self._all_references():
            with_heading = [
                r for r in resolutions if r.target is not None and r.row.reference.heading
            ]
            there = self._anchors({r.targets[0] for r in with_heading})
            lost = [r for r in with_heading if not _names_anchor(r, there)]
            nodes = self._nodes({n for r in lost for n in (r.row.owner, r.targets[0])})
            for r in lost:
                yield MissingHeading(nodes[r.row.owner], r.row.reference, nodes[r.targets[0]])

    def problems(self) -> list[tuple[Node, list[str]]]:
        rows = self._db.execute(
            "SELECT number, id, type, title, path, gone, problems FROM object "
            "WHERE problems IS NOT NULL AND NOT gone"
        )
        pairs = [(_node(row[:6]), json.loads(row[6])) for row in rows]
        return sorted(pairs, key=lambda item: _place(item[0]))

    def titled(self, store: Store, text: str) -> list[Head]:
        """The stored notes that a title, an alias or a name means."""
        return list(store.heads(node.id for node in self.named(text)).values())

    def named(self, text: str) -> list[Node]:
        numbers = resolve_word(self._db, text)
        return sorted(self._nodes(numbers).values(), key=_place)

    def _anchors(self, numbers: Iterable[int]) -> dict[int, set[str]]:
        unique = list(numbers)
        rows = select_in(self._db, "SELECT number, markdown FROM object", "number", unique)
        by_number = {number: set[str]() for number, markdown in rows if markdown}
        for owner, key in select_in(self._db, "SELECT owner, key FROM anchor", "owner", unique):
            by_number.setdefault(owner, set()).add(loaded(key))
        return by_number

    def _markdown_numbers(self) -> list[tuple[int]]:
        return self._db.execute(
            "SELECT number FROM object WHERE markdown AND NOT gone ORDER BY path"
        ).fetchall()

    def _all_references(self) -> Iterator[list[Resolution]]:
        numbers = [row[0] for row in self._markdown_numbers()]
        for part in portions(numbers, STEP):
            order = {number: place for place, number in enumerate(part)}
            rows = references_of(self._db, part)
            yield resolve(self._db, sorted(rows, key=lambda row: order[row.owner]))

    def _touching(self, objects: Collection[int], met: dict[int, Resolution]) -> list[Resolution]:
        rows = [*references_of(self._db, objects), *references_at(self._db, objects)]
        new = {row.number: row for row in rows if row.number not in met}
        met.update((r.row.number, r) for r in resolve(self._db, new.values()))
        resolutions = _single(met[number] for number in dict.fromkeys(row.number for row in rows))
        return [r for r in resolutions if r.row.owner in objects or r.targets[0] in objects]

    def _selected(self, objects: Collection[int], selection: Selection) -> set[int]:
        selected = set(objects)
        if selection.types:
            nodes = self._nodes(selected)
            selected = {n for n in selected if nodes[n].type in selection.types}
        if selection.tag is not None:
            selected &= self._with_tag(selection.tag)
        return selected

    def _with_tag(self, tag: str) -> set[int]:
        name = tag.lstrip("#").strip("/").casefold()
        rows = self._db.execute(
            "SELECT owner FROM tag WHERE folded = ? OR substr(folded, 1, ?) = ?",
            (stored(name), len(name) + 1, stored(name + "/")),
        )
        return {row[0] for row in rows}

    def _number(self, id: str) -> int | None:
        query = "SELECT number FROM object WHERE id = ? AND type IS NOT NULL"
        row = self._db.execute(query, (stored(id),)).fetchone()
        return None if row is None else int(row[0])

    def _nodes(self, numbers: Iterable[int]) -> dict[int, Node]:
        rows = select_in(self._db, _NODES, "number", list(numbers))
        return {row[0]: _node(row) for row in rows}

    def _edges(self, found: Sequence[Resolution]) -> list[Edge]:
        once = {r.row.number: r for r in found}
        nodes = self._nodes({n for r in once.values() for n in (r.row.owner, r.targets[0])})
        ordered = sorted(
            once.values(), key=lambda r: (_place(nodes[r.row.owner]), *_place_within(r.row))
        )
        return [
            Edge(nodes[r.row.owner].id, nodes[r.targets[0]].id, r.row.reference, r.row.version_ref)
            for r in ordered
        ]


def _place_within(row: ReferenceRow) -> tuple[int, int, int]:
    turn_place = row.position if row.position >= TURN_ROOM else 0
    return turn_place, row.reference.start, row.number


def _names_anchor(found: Resolution, there: Mapping[int, Collection[str]]) -> bool:
    # Only Markdown files are read for headings: of others nothing can be said.
    keys = there.get(found.targets[0])
    return keys is None or anchor_key(found.row.reference.heading or "") in keys


def _single(found: Iterable[Resolution]) -> list[Resolution]:
    return [r for r in found if r.target is not None]


def _node(row: Sequence[Any]) -> Node:
    if bytes in map(type, row):
        row = tuple(map(loaded, row))
    _, id, type_, title, path, gone = row
    return Node(id, type_ or "unknown", title or id, path, bool(gone))


def _place(node: Node) -> tuple[str, str]:
    """Sort key: files by path, then others."""
    return node.path if node.path is not None else "\U0010ffff", node.id

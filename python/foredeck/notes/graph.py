"""The graph of a store's objects: who refers to whom. Metadata only; no content is read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.notes.layer import TURN_ROOM, loaded, stored
from foredeck.notes.named_parts import anchor_key
from foredeck.notes.parsed import Reference, folded
from foredeck.notes.resolving import (
    ReferenceRow,
    Resolution,
    references_at,
    references_of,
    resolve,
    resolve_word,
)
from foredeck.store.protocol import portions
from foredeck.store.sqlite.rows import select_in

STEP = 500
"""Objects at a time, where all of them are read."""

_NODES = "SELECT number, id, type, title, path, gone FROM object"


@dataclass(frozen=True, slots=True)
class Node:
    """An object as the graph shows it. `gone`: it was deleted, but is still referred to."""

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
    """One reference from an object to another; `version_ref` has the fields of the `VersionRef`
    that foredeck recorded with a static one, None for those that people write."""

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
    """A reference that means nothing known, or several objects alike."""

    source: Node
    reference: Reference
    candidates: list[Node]


@dataclass(frozen=True, slots=True)
class MissingHeading:
    """A reference to a heading or block that the Markdown file which is meant does not have."""

    source: Node
    reference: Reference
    target: Node


@dataclass(frozen=True, slots=True)
class Selection:
    """Which edges and nodes to follow; an empty set allows all.

    `tag`: nodes beyond the first must have it, or one within it.
    """

    types: frozenset[str] = frozenset()
    relations: frozenset[str] = frozenset()
    tag: str | None = None


EVERYTHING = Selection()


@dataclass(slots=True)
class Neighbourhood:
    """Nodes with their distance, the nearest first, and the edges between them.

    `complete` is False where there were more nodes than asked for.
    """

    nodes: list[tuple[Node, int]] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    complete: bool = True


class Graph:
    """Answers questions about references, from a layer that is up to date."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def node(self, id: str) -> Node | None:
        """One object; None for one that is not stored."""
        row = self._db.execute(_NODES + " WHERE id = ?", (stored(id),)).fetchone()
        return None if row is None or row[2] is None else _node(row)

    def backlinks(self, id: str) -> list[Edge]:
        """The references to an object, in the order of the paths that they are in."""
        number = self._number(id)
        if number is None:
            return []
        found = _single(resolve(self._db, references_at(self._db, {number})))
        return self._edges([r for r in found if r.target == number])

    def links(self, id: str) -> list[Edge]:
        """The references in an object that mean one other, in the order of its text."""
        number = self._number(id)
        rows = references_of(self._db, [] if number is None else [number])
        return self._edges(_single(resolve(self._db, rows)))

    def neighbours(
        self, id: str, depth: int = 1, selection: Selection = EVERYTHING, limit: int = 1000
    ) -> Neighbourhood:
        """What is at most `depth` references away, in either direction; cycles end by themselves.

        At most `limit` nodes, those that are nearest.
        """
        start = self._number(id)
        if start is None:
            return Neighbourhood()
        distance = {start: 0}
        edges: dict[int, Resolution] = {}
        met: dict[int, Resolution] = {}
        complete, ring = True, {start}
        for step in range(1, depth + 1):
            around = self._touching(ring, met)
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
        """All Markdown files that are there, by path, each with its property `kind`."""
        rows = self._db.execute(
            "SELECT number, id, type, title, path, gone, kind FROM object "
            "WHERE markdown AND NOT gone"
        )
        chosen = None if tag is None else self._with_tag(tag)
        wanted = (row for row in rows if chosen is None or row[0] in chosen)
        found = [(_node(row[:6]), loaded(row[6])) for row in wanted]
        return sorted(found, key=lambda item: _place(item[0]))

    def tags(self) -> list[tuple[str, int]]:
        """Each tag as it is first written, with the number of files that have it."""
        rows = self._db.execute(
            "SELECT folded, min(name), count(DISTINCT owner) FROM tag GROUP BY folded"
        )
        found = [(loaded(folded_), loaded(name), count) for folded_, name, count in rows]
        return [(name, count) for _, name, count in sorted(found)]

    def tags_of(self, id: str) -> list[str]:
        """The tags of one file, each once, in the order of its text."""
        rows = self._db.execute(
            "SELECT name FROM tag WHERE owner = ? ORDER BY start", (self._number(id),)
        )
        return list(dict.fromkeys(loaded(row[0]) for row in rows))

    def orphans(self) -> set[str]:
        """Ids of the Markdown files that no other one refers to."""
        alone = {row[0] for row in self._markdown_numbers()}
        for found in self._all_references():
            alone -= {r.targets[0] for r in found if r.target not in (None, r.row.owner)}
        return {node.id for node in self._nodes(alone).values()}

    def unresolved(self) -> Iterator[Unresolved]:
        """The references in Markdown files that mean nothing or several objects."""
        for found in self._all_references():
            yield from self._unresolved(found)

    def unresolved_in(self, id: str) -> list[Unresolved]:
        """The references in one object that people wrote and that mean nothing, or several."""
        number = self._number(id)
        found = resolve(self._db, references_of(self._db, [] if number is None else [number]))
        written = [r for r in found if r.row.reference.style != "id"]
        return list(self._unresolved(written))

    def _unresolved(self, found: Iterable[Resolution]) -> Iterator[Unresolved]:
        loose = [r for r in found if r.target is None]
        nodes = self._nodes({n for r in loose for n in (r.row.owner, *r.targets)})
        for r in loose:
            candidates = sorted((nodes[n] for n in r.targets), key=_place)
            yield Unresolved(nodes[r.row.owner], r.row.reference, candidates)

    def missing_headings(self) -> Iterator[MissingHeading]:
        """The references in Markdown files to headings and blocks that are not there."""
        for found in self._all_references():
            named = [r for r in found if r.target is not None and r.row.reference.heading]
            there = self._anchors({r.targets[0] for r in named})
            lost = [r for r in named if not _names_anchor(r, there)]
            nodes = self._nodes({n for r in lost for n in (r.row.owner, r.targets[0])})
            for r in lost:
                yield MissingHeading(nodes[r.row.owner], r.row.reference, nodes[r.targets[0]])

    def problems(self) -> list[tuple[Node, list[str]]]:
        """What was passed over in Markdown files, such as frontmatter that is no YAML."""
        rows = self._db.execute(
            "SELECT number, id, type, title, path, gone, problems FROM object "
            "WHERE problems IS NOT NULL AND NOT gone"
        )
        found = [(_node(row[:6]), json.loads(row[6])) for row in rows]
        return sorted(found, key=lambda item: _place(item[0]))

    def named(self, text: str) -> list[Node]:
        """The objects that a wikilink with this target would mean, written nowhere in particular.

        Titles, nicknames, ids and names of files; several where it is ambiguous.
        """
        numbers = resolve_word(self._db, text)
        return sorted(self._nodes(numbers).values(), key=_place)

    def _anchors(self, numbers: Iterable[int]) -> dict[int, set[str]]:
        """What can be named in each of these objects that is a Markdown file, by key."""
        named = list(numbers)
        rows = select_in(self._db, "SELECT number, markdown FROM object", "number", named)
        found = {number: set[str]() for number, markdown in rows if markdown}
        for owner, key in select_in(self._db, "SELECT owner, key FROM anchor", "owner", named):
            found.setdefault(owner, set()).add(loaded(key))
        return found

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
        """The references out of some objects and into them. `met`: those that were resolved for
        this question already, by row; it is added to."""
        rows = [*references_of(self._db, objects), *references_at(self._db, objects)]
        new = {row.number: row for row in rows if row.number not in met}
        met.update((r.row.number, r) for r in resolve(self._db, new.values()))
        found = _single(met[number] for number in dict.fromkeys(row.number for row in rows))
        return [r for r in found if r.row.owner in objects or r.targets[0] in objects]

    def _selected(self, objects: Collection[int], selection: Selection) -> set[int]:
        kept = set(objects)
        if selection.types:
            nodes = self._nodes(kept)
            kept = {n for n in kept if nodes[n].type in selection.types}
        if selection.tag is not None:
            kept &= self._with_tag(selection.tag)
        return kept

    def _with_tag(self, tag: str) -> set[int]:
        name = folded(tag.lstrip("#").strip("/"))
        rows = self._db.execute(
            "SELECT owner FROM tag WHERE folded = ? OR substr(folded, 1, ?) = ?",
            (stored(name), len(name) + 1, stored(name + "/")),
        )
        return {row[0] for row in rows}

    def _number(self, id: str) -> int | None:
        known = "SELECT number FROM object WHERE id = ? AND type IS NOT NULL"
        row = self._db.execute(known, (stored(id),)).fetchone()
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
    """What the references of one object are sorted by: those of a chat by turn and message."""
    said = row.position if row.position >= TURN_ROOM else 0
    return said, row.reference.start, row.number


def _names_anchor(found: Resolution, there: Mapping[int, Collection[str]]) -> bool:
    """Whether a heading is there, as far as that can be said."""
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
    """What nodes are sorted by: files by path, all others after them."""
    return node.path if node.path is not None else "\U0010ffff", node.id

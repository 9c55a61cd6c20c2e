"""Resolves references to one object, several, or none."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foredeck.model.documents import chat_id
from foredeck.notes.layer import loaded, stored
from foredeck.notes.parsed import Name, Rank, Reference, fits, keys_of
from foredeck.store.sqlite.rows import select_in

_REFERENCES = """
SELECT number, owner, position, target, relation, embed, heading, label, version, field, start,
    "end", style, part, version_ref
FROM reference"""
_Ends = Mapping[int, int | None]
_AIMED = "SELECT l.reference FROM name n JOIN lookup l ON l.key = n.key"


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """A stored reference, with owner, position and pinned version."""

    number: int
    owner: int
    position: int
    reference: Reference
    version_ref: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Resolution:
    """One target is an edge, none is broken, several are ambiguous, never guessed."""

    row: ReferenceRow
    targets: tuple[int, ...]

    @property
    def target(self) -> int | None:
        """The only target, if one."""
        return self.targets[0] if len(self.targets) == 1 else None


def references_of(db: sqlite3.Connection, owners: Iterable[int]) -> list[ReferenceRow]:
    """References of some objects, in text order."""
    return _read(db, "owner", owners)


def references_at(db: sqlite3.Connection, targets: Iterable[int]) -> list[ReferenceRow]:
    """References that may mean some objects, by any name."""
    aimed = select_in(db, _AIMED, "n.target", list(came_from(db, targets)))
    return _read(db, "number", {number for (number,) in aimed})


def came_from(db: sqlite3.Connection, objects: Iterable[int]) -> set[int]:
    """Objects with all that moved to become them."""
    numbers, new = set(objects), set(objects)
    while new:
        rows = select_in(db, "SELECT number FROM object", "moved_to", list(new))
        new = {number for (number,) in rows} - numbers
        numbers |= new
    return numbers


def resolve(db: sqlite3.Connection, rows: Collection[ReferenceRow]) -> list[Resolution]:
    """The meaning of each reference, in order."""
    keys: dict[int, list[str | bytes]] = defaultdict(list)
    numbers = [row.number for row in rows]
    for number, key in select_in(db, "SELECT reference, key FROM lookup", "reference", numbers):
        keys[number].append(key)
    names = _names(db, {key for keys_of_row in keys.values() for key in keys_of_row})
    ends = _ends(db, {entry.target for entries in names.values() for entry in entries})
    sessions = _sessions(db, rows)
    cache: dict[object, tuple[bool, tuple[int, ...]]] = {}
    resolutions = []
    for row in rows:
        session_ids = sessions.get(row.owner, frozenset())
        spelling = (row.reference.whole, row.reference.style, row.reference.static)
        alike = (*spelling, session_ids, *keys[row.number])
        # References with one spelling and the same keys are resolved once: many may refer to one
        # name.
        if alike not in cache:
            entries = (entry for key in keys[row.number] for entry in names.get(key, ()))
            cache[alike] = _chosen(row.reference, list(entries), ends, session_ids)
        is_whole, targets = cache[alike]
        if is_whole:
            row = replace(row, reference=_as_a_whole(row.reference))
        resolutions.append(Resolution(row, targets))
    return resolutions


def resolve_word(db: sqlite3.Connection, text: str) -> tuple[int, ...]:
    """Objects that `[[text]]` means outside any file."""
    reference = Reference(text)
    names = _names(db, map(stored, keys_of(reference, None, None)))
    entries = [entry for named_entries in names.values() for entry in named_entries]
    return _choose(reference, entries, _ends(db, {e.target for e in entries}), frozenset())


@dataclass(frozen=True, slots=True)
class _Named:
    name: Name
    owner: int
    target: int


def _names(db: sqlite3.Connection, keys: Iterable[str | bytes]) -> dict[str | bytes, list[_Named]]:
    by_key: dict[str | bytes, list[_Named]] = defaultdict(list)
    select = "SELECT key, rank, text, owner, target FROM name"
    for key, rank, text, owner, target in select_in(db, select, "key", list(keys)):
        by_key[key].append(_Named(Name(loaded(key), Rank(rank), loaded(text)), owner, target))
    return by_key


def _chosen(
    reference: Reference, entries: Sequence[_Named], ends: _Ends, sessions: frozenset[str]
) -> tuple[bool, tuple[int, ...]]:
    """A reference's targets, and whether an apparent field belongs to their name."""
    if reference.part is not None:
        whole = _as_a_whole(reference)
        by_word = [each for each in entries if each.name.rank not in (Rank.EXACT, Rank.HANDLE)]
        if targets := _choose(whole, by_word, ends, sessions):
            return True, targets
    return False, _choose(reference, entries, ends, sessions)


def _as_a_whole(reference: Reference) -> Reference:
    return replace(reference, target=reference.whole, part=None)


def _choose(
    reference: Reference, entries: Iterable[_Named], ends: _Ends, sessions: frozenset[str]
) -> tuple[int, ...]:
    best: dict[tuple[int, bool], set[int]] = defaultdict(set)
    for entry in entries:
        name, target = entry.name, entry.target
        if not fits(reference, name):
            continue
        if name.rank == Rank.HANDLE and name.text not in sessions:
            continue
        if name.rank == Rank.EXACT or reference.static:
            # A version is that of the object it was written for, wherever the file is by now.
            end = None if reference.static else ends.get(target, target)
            best[name.rank, False].add(target if end is None else end)
        elif (end := ends.get(target, target)) is not None:
            moved = name.rank in (Rank.PATH, Rank.NAME) and entry.owner != target
            best[name.rank, moved].add(end)
    return tuple(sorted(best[min(best)])) if best else ()


def _ends(db: sqlite3.Connection, objects: Iterable[int]) -> _Ends:
    gone: dict[int, int | None] = {}
    new = set(objects)
    while new:
        select = "SELECT number, gone OR type IS NULL, moved_to FROM object"
        rows = [*select_in(db, select, "number", list(new))]
        moved = {number: moved_to for number, is_gone, moved_to in rows if is_gone}
        gone |= moved
        new = {to for to in moved.values() if to is not None} - gone.keys()
    return {object: _end(gone, object) for object in gone}


def _end(gone: Mapping[int, int | None], object: int) -> int | None:
    visited: set[int] = set()
    at: int | None = object
    while at is not None and at in gone:
        if at in visited:  # two names that were moved to each other
            return None
        visited.add(at)
        at = gone[at]
    return at


def _sessions(db: sqlite3.Connection, rows: Iterable[ReferenceRow]) -> dict[int, frozenset[str]]:
    """Sessions whose handles (`[[@12]]`) an object means."""
    owners = sorted({row.owner for row in rows if row.reference.target.startswith("@")})
    by_owner: dict[int, frozenset[str]] = {}
    if owners:
        names = {name: owner for owner in owners for name in came_from(db, [owner])}
        select = "SELECT target, text, rank FROM name"
        for target, session, rank in select_in(db, select, "target", list(names)):
            if rank == Rank.HANDLE:
                owner = names[target]
                by_owner[owner] = by_owner.get(owner, frozenset()) | {loaded(session)}
        for number, id, type in select_in(
            db, "SELECT number, id, type FROM object", "number", owners
        ):
            if type == "chat":
                by_owner[number] = frozenset({str(loaded(id)).removeprefix(chat_id(""))})
    return by_owner


def _read(db: sqlite3.Connection, column: str, values: Iterable[int]) -> list[ReferenceRow]:
    rows = [_row(row) for row in select_in(db, _REFERENCES, column, list(values))]
    return sorted(rows, key=lambda row: (row.owner, row.position))


def _row(row: tuple[Any, ...]) -> ReferenceRow:
    if bytes in map(type, row):
        row = tuple(map(loaded, row))
    number, owner, position, target, relation, embed, *rest, version_ref = row
    reference = Reference(target, relation, bool(embed), *rest)
    recorded = None if version_ref is None else json.loads(version_ref)
    return ReferenceRow(number, owner, position, reference, recorded)

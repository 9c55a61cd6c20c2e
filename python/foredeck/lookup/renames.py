"""The history of a file across its renames: each name is an object with versions of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from foredeck.model.documents import Document
from foredeck.model.sources import history_source
from foredeck.names.finding import Found, find_object, in_histories
from foredeck.sources.snapshots import MOVED_FROM, version_ms
from foredeck.store.protocol import Head, Store
from foredeck.timeline.callers import tool_call_of


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an object: `number` counts its own history from 1."""

    number: int
    head: Head


@dataclass(frozen=True, slots=True)
class Stretch:
    """The versions that a file had under one name."""

    found: Found
    versions: list[Version]


def stretches(store: Store, found: Found) -> list[Stretch]:
    """What histories show of the file, what it was called before, in the order of time, what was
    asked for, and what it is called since."""
    own = Stretch(found, _versions(store, found.id))
    seen = {found.id}
    before = list(_before(store, own, seen))
    heads = [head for each in (*before, own) for head in in_histories(store, each.found)]
    histories = [Stretch(Found(head), _versions(store, head.id)) for head in heads]
    return [*histories, *reversed(before), own, *_after(store, own, seen)]


def versions_until_now(store: Store, found: Found) -> list[Head]:
    """All versions of a file in the order of time, those under its former names and in histories
    too. What several histories have of the same call, as those of a fork do, counts once."""
    versions: dict[tuple[object, ...], Head] = {}
    for stretch in stretches(store, found):
        for head in (version.head for version in stretch.versions):
            source = history_source(head.fields)
            call = tool_call_of(head) if source else None
            versions.setdefault(
                (call, head.view(Document).text_hash) if call else (head.token, head.id), head
            )
        if stretch.found.id == found.id:
            break
    return sorted(versions.values(), key=version_ms)


def _before(store: Store, stretch: Stretch, seen: set[str]) -> Iterator[Stretch]:
    """The nearest first. A name may have been taken more than once, each time from another."""
    for version in reversed(stretch.versions):
        for id in _origins(stretch.versions, version):
            if id in seen:
                continue
            seen.add(id)
            until = [v for v in _versions(store, id) if v.head.time_ms <= version.head.time_ms]
            if until:
                earlier = Stretch(find_object(store, id, stretch.found.session), until)
                yield earlier
                yield from _before(store, earlier, seen)


def _after(store: Store, stretch: Stretch, seen: set[str]) -> Iterator[Stretch]:
    for version in stretch.versions:
        id = version.head.fields.get("moved_to")
        if id is None or id in seen:
            continue
        seen.add(id)
        since = [v for v in _versions(store, id) if v.head.time_ms >= version.head.time_ms]
        if since:
            later = Stretch(find_object(store, id, stretch.found.session), since)
            yield later
            yield from _after(store, later, seen)


def _versions(store: Store, id: str) -> list[Version]:
    return [Version(number, head) for number, head in enumerate(store.history(id), start=1)]


def _origins(versions: Sequence[Version], version: Version) -> list[str]:
    """The objects that a version came from by a rename; later ones carry the same references."""
    before = next((v for v in versions if v.number == version.number - 1), None)
    carried = set() if before is None else set(_moved_from(before.head))
    return [id for id in _moved_from(version.head) if id not in carried]


def _moved_from(head: Head) -> list[str]:
    references = (head.fields.get("provenance") or {}).get("parent_refs") or ()
    return [ref.removeprefix(MOVED_FROM) for ref in references if ref.startswith(MOVED_FROM)]

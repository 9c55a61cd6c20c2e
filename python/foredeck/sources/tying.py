"""Renames that went unnoticed, found by what is stored: a file that is gone, and one of the same
bytes that came after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from foredeck.model.documents import FileDocument, Generator
from foredeck.model.quoting import name
from foredeck.sources.indexing import Known, Sighting
from foredeck.sources.recorded import location_of
from foredeck.sources.versions import EMPTY_HASH, MOVED_FROM, file_version, link_move
from foredeck.store.protocol import Head, Store

SHOWN = 5
"""Candidates of a rename that are named."""


@dataclass(frozen=True, slots=True)
class LostRename:
    """A file that is gone, its last version with bytes, and what it may have become."""

    gone: Head
    last: Head
    found: Sequence[Head]


def lost_renames(store: Store) -> Iterator[LostRename]:
    """The files that count as deleted, and whose bytes came up in another file since."""
    files = store.query("file")
    by_hash: dict[str, list[Head]] = {}
    for head in files:
        if head.fields.get("state") not in ("deleted", "listed"):
            by_hash.setdefault(str(head.fields.get("source_hash")), []).append(head)
    for gone in files:
        if gone.fields.get("state") != "deleted" or gone.fields.get("moved_to"):
            continue
        versions = [v for v in store.history(gone.id) if v.fields.get("source_hash")]
        if not versions or versions[-1].fields["source_hash"] == EMPTY_HASH:
            continue
        last = versions[-1]
        same = by_hash.get(last.fields["source_hash"], ())
        found = [head for head in same if came_later(store, head, last)]
        if found:
            yield LostRename(gone, last, found)


def came_later(store: Store, head: Head, than: Head | None) -> bool:
    """Whether a file was first found on the disk after a version of another was stored, so that it
    may be that file renamed. What an agent has made is a copy, and what was renamed before is
    another file."""
    first = store.history(head.id)[0]
    parents = head.fields["provenance"].get("parent_refs") or ()
    return (
        than is not None
        and first.time_ms >= than.time_ms
        and first.id != than.id
        and first.fields["provenance"].get("generator") == "system"
        and not any(ref.startswith(MOVED_FROM) for ref in parents)
    )


def tied(store: Store, gone: Head, new: Head) -> list[Sighting]:
    """The sightings with which a file that is gone becomes another one that is stored."""
    by: tuple[str, Generator] = ("renames", "human")
    place = location_of(gone.id, Known(gone, gone.fields))
    old, arrived = (
        file_version(place, gone.fields, state="deleted", by=by),
        same_again(store, new, by),
    )
    link_move(old, arrived)
    path = location_of(new.id, Known(new, new.fields)).path
    return [
        Sighting(place.path, gone.id, "mentioned", old, gone, "deleted"),
        Sighting(path, new.id, "mentioned", arrived, new, arrived.state),
    ]


def same_again(store: Store, head: Head, by: tuple[str, Generator]) -> FileDocument:
    """A version of a file with what its newest has, to be tied to what it was renamed from."""
    fields = head.fields
    document = store.get(head.id, FileDocument, head.token)
    return file_version(
        location_of(head.id, Known(head, fields)),
        fields,
        state=fields["state"],
        content=None if document is None else document.content,
        source_hash=fields.get("source_hash"),
        revision=fields.get("revision"),
        size=fields.get("size"),
        file_type=fields.get("file_type"),
        by=by,
    )


def unclear_rename(path: str, candidates: Sequence[str]) -> str:
    """What the user reads where a file may have become several others."""
    shown = ", ".join(map(name, candidates[:SHOWN]))
    more = f" and {len(candidates) - SHOWN} more" if len(candidates) > SHOWN else ""
    return (
        f"{name(path)} is gone, and its bytes are in {shown}{more}. If it was renamed to one of "
        f"them, `foredeck renames {name(path)} NEW` says so: pin, nickname and links follow."
    )

"""The files that one look takes in, and which of them are the same file under a new name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from foredeck.sources.filesystem import Location
from foredeck.sources.indexing import CHANGING, Known, Role, Sighting
from foredeck.sources.versions import link_move


@dataclass(slots=True)
class Inspected:
    """A file with what was known of it and what was found."""

    location: Location
    known: Known
    sighting: Sighting


def unchanged(place: Location, role: Role, known: Known, state: str) -> Sighting:
    """A sighting that makes no version."""
    return Sighting(place.path, place.object_id, role, None, known.head, state)


def deferred(met: Inspected) -> Sighting:
    """The sighting while a change does not count yet."""
    if met.sighting.document is None:
        return met.sighting
    return unchanged(met.location, met.sighting.role, met.known, CHANGING)


def new_hash(met: Inspected) -> str | None:
    """Hash of the bytes of the new version; None where there is none."""
    document = met.sighting.document
    return None if document is None else document.source_hash


def tie_renames(
    met: dict[str, Inspected], gone: Sequence[Inspected], arrived: list[Inspected]
) -> list[Inspected]:
    """Link each file that is gone to one that has its bytes; returns those without a match.

    Of several matches one with the same name is preferred. Each is used once, and joins `met`.
    """
    left: list[Inspected] = []
    for old in gone:
        same = [m for m in arrived if new_hash(m) == old.known.fields["source_hash"]]
        if not same or old.sighting.document is None:
            left.append(old)
            continue
        name = os.path.basename(old.location.path)  # noqa: PTH119
        new = next((m for m in same if m.location.path.endswith("/" + name)), same[0])
        arrived.remove(new)
        met[new.location.object_id] = new
        if new.sighting.document is not None:
            link_move(old.sighting.document, new.sighting.document)
    return left

"""Files on their way through one look, and which of them are one file under a new name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from foredeck.sources.filesystem import Location
from foredeck.sources.indexing import CHANGING, Known, Role, Sighting
from foredeck.sources.versions import link_move


@dataclass(slots=True)
class Met:
    """A file on its way through one call."""

    location: Location
    known: Known
    sighting: Sighting


def unchanged(place: Location, role: Role, known: Known, state: str) -> Sighting:
    """A sighting that makes no version."""
    return Sighting(place.path, place.object_id, role, None, known.head, state)


def put_off(met: Met) -> Sighting:
    """What there is to say while a change does not count yet."""
    if met.sighting.document is None:
        return met.sighting
    return unchanged(met.location, met.sighting.role, met.known, CHANGING)


def new_hash(met: Met) -> str | None:
    """Hash of the bytes that the file newly has; None without a new version."""
    document = met.sighting.document
    return None if document is None else document.source_hash


def tie_renames(met: dict[str, Met], gone: Sequence[Met], arrived: list[Met]) -> list[Met]:
    """Link each file that is gone to one with its bytes; returns those that there is none for.

    Of several the one with the same name. Each is taken once, and joins `met`.
    """
    left: list[Met] = []
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

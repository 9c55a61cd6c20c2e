"""The files that one look takes in, and which of them are the same file under a new name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    """Link each file that is gone to the one that has its bytes; returns those without a match.

    Of several the one whose path ends most alike is meant. Where that, too, fits several, none is
    guessed: the sighting of what is gone names them. A match is used once, and joins `met`.
    """
    left = list(gone)
    while pairs := [(old, new) for old in left if (new := _match(old, left, arrived)) is not None]:
        for old, new in pairs:
            left.remove(old)
            arrived.remove(new)
            met[new.location.object_id] = new
            if old.sighting.document is not None and new.sighting.document is not None:
                link_move(old.sighting.document, new.sighting.document)
    for old in left:
        places = tuple(sorted(new.location.path for new in arrived if _has_bytes_of(new, old)))
        if places:
            old.sighting = replace(old.sighting, candidates=places)
    return left


def _match(
    old: Inspected, gone: Sequence[Inspected], arrived: Sequence[Inspected]
) -> Inspected | None:
    """The file that this one has become, if no other pair of these files fits as well."""
    same = [new for new in arrived if _has_bytes_of(new, old)]
    best = max((_alike(old, new) for new in same), default=0)
    fitting = [new for new in same if _alike(old, new) == best]
    if len(fitting) != 1:
        return None
    new = fitting[0]
    rivals = [o for o in gone if o is not old and _has_bytes_of(new, o) and _alike(o, new) >= best]
    return None if rivals else new


def _has_bytes_of(new: Inspected, old: Inspected) -> bool:
    return new_hash(new) == str(old.known.fields["source_hash"])


def _alike(one: Inspected, other: Inspected) -> int:
    """With how many equal names two paths end."""
    ends = (each.location.path.split("/")[::-1] for each in (one, other))
    return next((n for n, (a, b) in enumerate(zip(*ends, strict=False)) if a != b), 0)

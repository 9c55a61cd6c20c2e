"""Changes of files that came from outside a tool call, taken into the store and the session."""

from __future__ import annotations

from collections.abc import Iterable

from foredeck.context.index import Seen
from foredeck.context.session import Session
from foredeck.sources import Sighting


def take_sightings(session: Session, sightings: Iterable[Sighting]) -> None:
    """Store new versions and note which visible files have changed under the model.

    A watcher never changes a session's sets (design 1 section 4): what the index knows already
    gets a new version, nothing is added to it.
    """
    changed = [sighting for sighting in sightings if sighting.document is not None]
    for sighting in changed:
        document = sighting.document
        if document is None:
            continue
        session.workspace.put(document)
        ordinal = session.index.by_object.get(document.id)
        if ordinal is None:
            continue
        session.see(Seen.of(document, sighting.path))
        session.notices[ordinal] = "deleted" if document.state == "deleted" else "changed"
    if changed:
        session.workspace.commit()

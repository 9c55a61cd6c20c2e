"""Changes of files that came from outside a tool call, taken into the store and the session."""

from __future__ import annotations

from collections.abc import Iterable

from foredeck.context.intake.notices import keep_untold
from foredeck.context.state.index import Seen
from foredeck.context.state.session import Session
from foredeck.sources import Sighting
from foredeck.store.protocol import Head


def take_sightings(session: Session, sightings: Iterable[Sighting]) -> None:
    """Store new versions and note which visible files have changed under the model.

    A watcher never changes a session's sets (design 1 section 4): what the index knows already
    gets a new version, nothing is added to it.
    """
    before = dict(session.notices)
    stored = False
    for sighting in sightings:
        ordinal = session.index.by_object.get(sighting.object_id)
        if sighting.document is not None:
            session.workspace.put(sighting.document)
            stored = True
            if ordinal is not None:
                session.see(Seen.of(sighting.document, sighting.path))
                session.notices[ordinal] = _what(sighting)
        elif ordinal is not None and _is_news(session, ordinal, sighting.head):
            session.notices[ordinal] = _what(sighting)
    if session.notices != before:
        keep_untold(session)
    if stored or session.notices != before:
        session.workspace.commit()


def _what(sighting: Sighting) -> str:
    return "deleted" if sighting.state == "deleted" else "changed"


def _is_news(session: Session, ordinal: int, head: Head | None) -> bool:
    """Whether somebody else has stored a content that this session has not met; it has now."""
    entry = session.index.entries[ordinal]
    if head is None or head.fields.get("text_hash") == entry.pin.text_hash:
        return False
    if any(head.token == told.token for told in session.observed.values()):
        return False
    session.see_head(head, entry.label)
    return True

"""What was read out of a session for its memory: how far, and what became of it."""

from __future__ import annotations

from pydantic import Field

from foredeck.model.documents import Document, Provenance
from foredeck.model.records import by_foredeck


class ExtractionDocument(Document):
    """One answer of a model to the question what is worth remembering of some turns.

    Stored in one transaction with the entries that came of it. Holds no words of anybody's, so
    that there is nothing in it to erase.
    """

    type: str = "extraction"
    provenance: Provenance = Field(default_factory=by_foredeck)
    session: str
    first: int
    """Numbers of the turns that were read: from this one"""
    last: int
    """to this one."""
    entries_kept: list[str] = Field(default_factory=list)
    """Ids of the entries that were kept at once;"""
    entries_proposed: list[str] = Field(default_factory=list)
    """of those that wait for the user's word."""
    refused: dict[str, int] = Field(default_factory=dict)
    """How many lines were refused, by reason."""
    time_ms: int


def extraction_id(session: str, last: int) -> str:
    """Id of what was read out of a session up to this turn."""
    return f"extraction:{session}:{last}"

"""Things outside that objects only point to: a URL, an object in S3, a row of a database."""

from __future__ import annotations

from pydantic import Field

from foredeck.model.documents import Document, Provenance, identity_hash
from foredeck.model.sources import PointerSource


def by_a_name() -> Provenance:
    """Where pointers come from: what they lead to was named."""
    return Provenance(origin="pointer", generator="system")


class PointerDocument(Document):
    """What is known of a thing without fetching it: `locator` says where it is, as a user writes
    it. It has no content."""

    metadata_fields = ("locator", "file_type")

    type: str = "pointer"
    provenance: Provenance = Field(default_factory=by_a_name)
    locator: str = ""
    file_type: str = ""
    """The extension in the name, empty where there is none."""

    @classmethod
    def of(cls, source: PointerSource, locator: str, file_type: str) -> PointerDocument:
        """The sealed object that points to a source."""
        id = identity_hash("pointer", source)
        return cls(id=id, source=source, locator=locator, file_type=file_type).seal()

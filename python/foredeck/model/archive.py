"""What is left of messages whose text a user has had pruned."""

from __future__ import annotations

from pydantic import Field

from foredeck.model.documents import Document, Provenance
from foredeck.model.records import by_foredeck

ARCHIVED = "(archived)"
"""The placeholder for text that was pruned."""


class ArchivedDocument(Document):
    """The messages of a session that have lost their text; each pruning adds a version.

    `messages`: by the address of a message, what is left of it, packed as `{"$json": hash}`.
    `texts`: hashes of longer texts that went with them. Of these nothing is left.
    """

    type: str = "archived"
    provenance: Provenance = Field(default_factory=by_foredeck)
    session: str
    messages: dict[str, dict[str, str]] = Field(default_factory=dict)
    texts: list[str] = Field(default_factory=list)


def archived_id(session: str) -> str:
    """Id of what is left of a session's pruned messages."""
    return f"archived:{session}"

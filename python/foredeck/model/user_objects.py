"""Long texts of the user's, such as a pasted log: objects of their own, that can leave the prompt.

The chat keeps the message as it was; the object is the same text under a handle.
"""

from __future__ import annotations

from pydantic import Field

from foredeck.model.canonical import hash_text
from foredeck.model.documents import Document, Provenance

FIRST_LINE_CHARS = 80

PASTE_CHARS = 8000
"""From this many characters on a text of the user's is an object, and folds."""


def by_the_user() -> Provenance:
    """Where such a text comes from."""
    return Provenance(origin="user-input", generator="human")


class UserDocument(Document):
    """What a user has written or pasted: `content` is the text, and never changes.

    It belongs to no session: the same text is the same object wherever it is pasted.
    """

    metadata_fields = ("char_count", "line_count", "first_line")

    type: str = "user"
    provenance: Provenance = Field(default_factory=by_the_user)
    char_count: int = 0
    line_count: int = 0
    first_line: str = ""
    """The first line that is not blank, as far as it is short."""

    @classmethod
    def of(cls, text: str) -> UserDocument:
        """The sealed object of a text."""
        lines = text.rstrip("\n").count("\n") + 1
        first = text.lstrip()[: FIRST_LINE_CHARS + 1].partition("\n")[0].rstrip()
        if len(first) > FIRST_LINE_CHARS:
            first = first[: FIRST_LINE_CHARS - 1] + "…"
        return cls(
            id=user_object_id(hash_text(text)),
            content=text,
            char_count=len(text),
            line_count=lines,
            first_line=first,
        ).seal()


def user_object_id(text_hash: str) -> str:
    """Id of the object of a text, by the text's hash."""
    return f"user:{text_hash[:32]}"

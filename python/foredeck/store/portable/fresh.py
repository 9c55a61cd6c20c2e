"""Fresh ids for a session that is imported beside the one it was exported from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from foredeck.model.documents import Document
from foredeck.model.ids import uuid7
from foredeck.model.kinds import owner_of
from foredeck.store.portable.ownership import PREFIXES

_HASHES = frozenset({"content_hash", "metadata_view_hash"})
_REFERENCES = frozenset(
    {
        "id",
        "answers",
        "call",
        "chat_ref",
        "entries_kept",
        "entries_proposed",
        "file_pin",
        "file_refs",
        "object",
        "observations",
        "parent",
        "parent_ref",
        "pin",
        "previous",
        "provenance",
        "replaces",
        "session",
        "session_id",
        "session_ref",
        "superseded_by",
        "system",
        "system_prompt_ref",
        "toolcall_ids",
        "turn",
        "turn_ref",
    }
)
"""Fields that refer to documents. All others stay as they are, the bytes that the model saw
(`parts`, `inserts`) and the words of others (`args`, `details`) above all."""


def _same(_before: Document, _now: Document) -> None:
    """Nothing but ids changes."""


class FreshIds:
    """Rewrites a session's own documents; what it shares with other sessions stays as it is.

    Documents must come in the order in which they pin each other, pinned ones first.
    """

    def __init__(
        self, session: str, own: Iterable[str], renew: Callable[[Document, Document], None] = _same
    ) -> None:
        """`own`: ids of all documents that are the session's own. `renew` may change a document
        that has got its fresh ids, given as it was and as it is, before it is sealed."""
        self.session = uuid7()
        self._old = session
        self._renew = renew
        self._ids = {id: self._assigned(id) or _like(id) for id in own}
        self._hashes: dict[str, str] = {}

    def document(self, document: Document) -> Document:
        """The document under its new id, sealed again; an object of others stays as it is."""
        body = document.model_dump()
        if owner_of(document.type, body) != self._old:
            return document
        fresh = {k: self._value(v) if k in _REFERENCES else v for k, v in body.items()}
        # A nickname means one object at a time, and it means the original.
        fresh["nickname"] = None
        if document.type == "session":
            fresh["provenance"]["parent_refs"].append(document.id)
        rewritten = type(document).model_validate(fresh)
        self._renew(document, rewritten)
        rewritten.seal()
        self._hashes[document.content_hash] = rewritten.content_hash
        self._hashes[document.metadata_view_hash] = rewritten.metadata_view_hash
        return rewritten

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return {
                key: self._hashes.get(item, item)
                if key in _HASHES and isinstance(item, str)
                else self._value(item)
                for key, item in value.items()
            }
        return value

    def _text(self, text: str) -> str:
        """A reference, rewritten; any other text as it is."""
        if text == self._old:
            return self.session
        return self._ids.get(text) or self._assigned(text) or text

    def _assigned(self, id: str) -> str | None:
        """The new form of an id that contains the session's; None for any other text."""
        for prefix in PREFIXES:
            start = f"{prefix}:{self._old}"
            if id == start or id.startswith(start + ":"):
                return f"{prefix}:{self.session}{id[len(start) :]}"
        return None


def _like(id: str) -> str:
    """A new id of the same form."""
    prefix, colon, _ = id.rpartition(":")
    return f"{prefix}{colon}{uuid7()}" if prefix in PREFIXES else uuid7()

"""How far anything stored is trusted: as the user's own word, or as derived from something.

It follows from provenance alone, for every kind of document, and for this user only. Whatever does
not carry their word (`User.vouch`) is derived: what a model wrote, what was imported or read from
old histories, what others on the same database have said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from foredeck.memory.user import User
from foredeck.model.documents import Document, Fields, session_object_id
from foredeck.model.memory import MemoryDocument
from foredeck.model.records import imported_id
from foredeck.store.protocol import Store

Trust = Literal["user-stated", "derived"]


def lowest(trusts: Iterable[Trust]) -> Trust:
    """What rests on several things is trusted as the least of them; on nothing, not at all."""
    found = set(trusts)
    return "user-stated" if found == {"user-stated"} else "derived"


def session_statement(session: str) -> list[Any]:
    """What an engine vouches for when it begins a session at this user's side."""
    return ["session", session]


def renewed_word(user: User) -> Callable[[Document, Document], None]:
    """For what is imported under fresh ids: an entry that carried this user's word, unchanged,
    carries it under its new id. No other entry comes to carry it."""

    def renew(before: Document, now: Document) -> None:
        if isinstance(before, MemoryDocument) and isinstance(now, MemoryDocument):
            held = user.vouches(before.statement(), before.vouched) and before.owner == user.id
            now.vouched = user.vouch(now.statement()) if held else None

    return renew


class TrustOf:
    """Says how far the documents of a store are trusted by one user."""

    def __init__(self, store: Store, user: User) -> None:
        self._store = store
        self._user = user

    def entry(self, document: MemoryDocument) -> Trust:
        """Of an entry of memory."""
        word = self._user.vouches(document.statement(), document.vouched)
        return "user-stated" if word and document.owner == self._user.id else "derived"

    def said_by_user(self, session: str | None) -> Trust:
        """For what a session's chat has as the user's. Only where that session began
        under this user's hands: what was imported may say anything, also in a session of theirs,
        and a subagent's user is the agent that started it."""
        if session is None or self._store.head(imported_id(session)) is not None:
            return "derived"
        head = self._store.head(session_object_id(session))
        if head is None or head.fields.get("started_by") is not None:
            return "derived"
        code = head.fields.get("begun_by")
        return "user-stated" if self._user.vouches(session_statement(session), code) else "derived"

    def document(self, id: str, *, users_part: bool = False) -> Trust:
        """Of any document. `users_part`: of a turn, what the user said in it."""
        head = self._store.head(id)
        if head is None:
            return "derived"
        return self.fields(head.fields, users_part=users_part)

    def fields(self, fields: Fields, *, users_part: bool = False) -> Trust:
        """As `document`, of one that has been read."""
        match fields.get("type"):
            case "memory":
                return self.entry(MemoryDocument.model_validate(dict(fields)))
            case "turn" if users_part:
                return self.said_by_user(fields.get("session"))
        return "derived"

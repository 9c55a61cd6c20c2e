"""Sessions that keep to themselves what is said in them, and what of a store is theirs."""

from __future__ import annotations

from collections.abc import Collection

from foredeck.model.documents import Fields, SessionDocument, session_object_id, session_of
from foredeck.model.records import MemberDocument
from foredeck.store.protocol import Head, Store


def is_private(store: Store, session: str | None) -> bool:
    """Whether a session is private."""
    head = None if session is None else store.head(session_object_id(session))
    return head is not None and SessionDocument.is_private(head.fields)


def private_sessions(store: Store, own: Collection[str] = ()) -> tuple[str, ...]:
    """The private sessions of a store, except these, which ask for themselves."""
    heads = store.query("session", {"private": True})
    return tuple(id for head in heads if (id := head.view(SessionDocument).session_id) not in own)


def is_hidden(store: Store, head: Head, own: Collection[str]) -> bool:
    """Whether an object belongs to a private session that is none of these. What a user has pasted
    belongs to all who have met it, and is hidden while they are all private. Files and what else
    belongs to no session are never private."""
    owners = _met_by(store, head.id) if head.type == "user" else {_owner(head.fields)}
    return bool(owners) and not any(
        owner in own or not is_private(store, owner) for owner in owners
    )


def _met_by(store: Store, object: str) -> set[str | None]:
    """The sessions in whose index an object is."""
    return {head.view(MemberDocument).session for head in store.query("member", {"object": object})}


def _owner(fields: Fields) -> str | None:
    reference = fields.get("session_ref")
    chat = fields.get("chat_ref")
    named = [
        fields.get("session_id"),
        fields.get("session"),
        session_of(reference) if isinstance(reference, str) and reference else None,
        chat.removeprefix("chat:") if isinstance(chat, str) else None,
    ]
    return next((name for name in named if isinstance(name, str) and name), None)

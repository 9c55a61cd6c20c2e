"""Sessions that keep to themselves what is said in them, and what of a store is theirs."""

from __future__ import annotations

from collections.abc import Collection

from foredeck.model.documents import Fields, SessionDocument, session_object_id, session_of
from foredeck.store.protocol import Store


def is_private(store: Store, session: str | None) -> bool:
    """Whether a session is private."""
    head = None if session is None else store.head(session_object_id(session))
    return head is not None and SessionDocument.is_private(head.fields)


def private_sessions(store: Store, own: Collection[str] = ()) -> tuple[str, ...]:
    """The private sessions of a store, except these, which ask for themselves."""
    heads = store.query("session", {"private": True})
    return tuple(id for head in heads if (id := str(head.fields["session_id"])) not in own)


def is_hidden(store: Store, fields: Fields, own: Collection[str]) -> bool:
    """Whether an object belongs to a private session that is none of these. Files and what else
    belongs to no session are nobody's secret."""
    owner = _owner(fields)
    return owner not in own and is_private(store, owner)


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

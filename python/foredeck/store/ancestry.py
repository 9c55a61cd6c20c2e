"""The sessions that a session was forked from."""

from __future__ import annotations

from collections.abc import Iterator

from foredeck.model.documents import session_object_id
from foredeck.store.protocol import Store


def ancestry(store: Store, session: str) -> Iterator[str]:
    """A session, the one that it was forked from, and so on. The last may have been forgotten, or
    never been stored. What an import may bring, a circle of parents, ends where it closes."""
    seen: set[str] = set()
    name: str | None = session
    while name is not None and name not in seen:
        seen.add(name)
        yield name
        head = store.head(session_object_id(name))
        name = None if head is None else head.fields.get("parent_session")

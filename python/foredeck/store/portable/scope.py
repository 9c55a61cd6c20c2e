"""Which documents belong to a session.

Its own documents, every object in its index with its whole history (also those that it took
over from other sessions), the nickname claims of these objects, and, for a forked session, the
calls of other sessions that its own continue: without them its prompts could not be shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from foredeck.errors import UnknownSession
from foredeck.model.documents import chat_id
from foredeck.model.kinds import OWNED, owner_of
from foredeck.model.records import MemberDocument
from foredeck.store.protocol import Head, Store, Token


def documents_of(store: Store, session: str) -> list[str]:
    """Ids of all documents that belong to a session. Raises `UnknownSession`."""
    own = {type: _own(store, type, session) for type in OWNED}
    if not any(own.values()):
        raise UnknownSession(f"no session {session!r} in this store")
    ids = [
        *(head.id for heads in own.values() for head in heads),
        *(head.view(MemberDocument).object for head in own["member"]),
        *_tasks(store, session, own["turn"]),
        *_ancestors(store, own["call"]),
    ]
    return list(dict.fromkeys(ids))


def _own(store: Store, type: str, session: str) -> list[Head]:
    """The documents of one type that are a session's own."""
    if type in ("chat", "system_prompt"):  # which name their session in several ways
        return list(store.heads([f"{type}:{session}"]).values())
    wanted = chat_id(session) if type == "toolcall" else session
    found = store.query(type, {OWNED[type]: wanted})
    return [head for head in found if owner_of(type, head.fields) == session]


def _tasks(store: Store, session: str, turns: Iterable[Head]) -> Iterator[str]:
    """Tasks that a session has made, has claimed, or worked on."""
    yield from (task for turn in turns if isinstance(task := turn.fields.get("task"), str))
    for head in store.query("task"):
        if session in (head.fields.get("created_by"), head.fields.get("session")):
            yield head.id


def _ancestors(store: Store, calls: Iterable[Head]) -> Iterator[str]:
    """Calls of other sessions that these calls continue."""
    seen = {head.id for head in calls}
    parents = _parents(calls) - seen
    while parents:
        seen |= parents
        heads = store.heads(sorted(parents))
        yield from heads
        parents = _parents(heads.values()) - seen


def _parents(calls: Iterable[Head]) -> set[str]:
    return {id for head in calls if isinstance(id := head.fields.get("parent"), str)}


@dataclass(slots=True)
class Versions:
    """All versions that belong to a session: `(type, document id)` by transaction."""

    by_token: dict[Token, list[tuple[str, str]]] = field(default_factory=dict)

    def add(self, history: Iterable[Head]) -> None:
        """Take in the whole history of a document."""
        for head in history:
            self.by_token.setdefault(head.token, []).append((head.type, head.id))


def versions_of(store: Store, session: str) -> Versions:
    """Every version that belongs to a session. Raises `UnknownSession`."""
    ids = documents_of(store, session)
    versions = Versions()
    for id in ids:
        versions.add(store.history(id))
    known = set(ids)
    for name in store.query("nickname"):
        claims = store.history(name.id)
        if any(claim.fields.get("object") in known for claim in claims):
            versions.add(claims)
    return versions

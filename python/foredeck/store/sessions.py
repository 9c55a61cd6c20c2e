"""What belongs to a session: which documents are its own, which sessions it was forked from, and
which sessions are private.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from foredeck.errors import UnknownSession
from foredeck.model.documents import Fields, SessionDocument, chat_id, session_object_id, session_of
from foredeck.model.kinds import OWNED, owner_of
from foredeck.model.records import MemberDocument
from foredeck.store.protocol import Head, Store, Token


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
    owners = {_owner(head.fields)}
    if head.type == "user":
        members = store.query("member", {"object": head.id})
        owners = {member.view(MemberDocument).session for member in members}
    return bool(owners) and not any(
        owner in own or not is_private(store, owner) for owner in owners
    )


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


# Which sessions it was forked from


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


# Which documents are its own


def documents_of(store: Store, session: str) -> list[str]:
    """Ids of all documents that belong to a session: its own, every object in its index (also those
    that it took over from other sessions), its tasks, and the calls of other sessions that a fork
    continues. Raises `UnknownSession`."""
    own = {type: _own(store, type, session) for type in OWNED}
    if not any(own.values()):
        raise UnknownSession(f"no session {session!r} in this store")
    ids = [
        *(head.id for heads in own.values() for head in heads),
        *(head.view(MemberDocument).object for head in own["member"]),
        *_tasks(store, session, own["turn"]),
        *_ancestors(store, own["call"]),  # without which a fork's prompts could not be shown
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


def versions_of(store: Store, session: str) -> dict[Token, list[tuple[str, str]]]:
    """Every version that belongs to a session: `(type, document id)` by transaction. Raises
    `UnknownSession`."""
    versions: dict[Token, list[tuple[str, str]]] = {}
    for history in _histories(store, documents_of(store, session)):
        for head in history:
            versions.setdefault(head.token, []).append((head.type, head.id))
    return versions


def _histories(store: Store, ids: list[str]) -> Iterator[list[Head]]:
    """The whole histories of documents, and of the claims of nicknames that they have or had."""
    yield from map(store.history, ids)
    known = set(ids)
    for name in store.query("nickname"):
        claims = store.history(name.id)
        if any(claim.fields.get("object") in known for claim in claims):
            yield claims

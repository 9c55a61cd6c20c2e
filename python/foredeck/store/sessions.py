"""A session's documents, ancestors and privacy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from foredeck.errors import UnknownSession
from foredeck.model.documents import Fields, SessionDocument, chat_id, session_object_id, session_of
from foredeck.model.kinds import OWNED, PROJECTS, owner_of, project_of_document
from foredeck.model.records import MemberDocument
from foredeck.store.protocol import Head, Token
from foredeck.store.store import Store


def is_private(store: Store, session: str | None) -> bool:
    head = None if session is None else store.head(session_object_id(session))
    return head is not None and SessionDocument.is_private(head.fields)


def private_sessions(store: Store, own: Collection[str] = ()) -> tuple[str, ...]:
    """Private sessions, except `own`."""
    heads = store.query("session", {"private": True})
    return tuple(id for head in heads if (id := head.view(SessionDocument).session_id) not in own)


def is_hidden(store: Store, head: Head, own: Collection[str]) -> bool:
    """Whether an object belongs to another private session.

    A paste is hidden while all sessions with it are private; files never are.
    """
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
    candidates = [
        fields.get("session_id"),
        fields.get("session"),
        session_of(reference) if isinstance(reference, str) and reference else None,
        chat.removeprefix("chat:") if isinstance(chat, str) else None,
    ]
    return next((name for name in candidates if isinstance(name, str) and name), None)


# Which sessions it was forked from


def ancestry(store: Store, session: str) -> Iterator[str]:
    """A session and its ancestors; stops at a circle, which an import may bring."""
    visited: set[str] = set()
    name: str | None = session
    while name is not None and name not in visited:
        visited.add(name)
        yield name
        head = store.head(session_object_id(name))
        name = None if head is None else head.fields.get("parent_session")


# Which documents are its own


def documents_of(store: Store, session: str) -> list[str]:
    """Ids of a session's documents, with those of its index and tasks. Raises `UnknownSession`."""
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
    if type in ("chat", "system_prompt"):  # which name their session in several ways
        return list(store.heads([f"{type}:{session}"]).values())
    owner = chat_id(session) if type == "toolcall" else session
    heads = store.query(type, {OWNED[type]: owner})
    return [head for head in heads if owner_of(type, head.fields) == session]


def _tasks(store: Store, session: str, turns: Iterable[Head]) -> Iterator[str]:
    yield from (task for turn in turns if isinstance(task := turn.fields.get("task"), str))
    for head in store.query("task"):
        if session in (head.fields.get("created_by"), head.fields.get("session")):
            yield head.id


def _ancestors(store: Store, calls: Iterable[Head]) -> Iterator[str]:
    visited = {head.id for head in calls}
    parents = _parents(calls) - visited
    while parents:
        visited |= parents
        heads = store.heads(sorted(parents))
        yield from heads
        parents = _parents(heads.values()) - visited


def _parents(calls: Iterable[Head]) -> set[str]:
    return {id for head in calls if isinstance(id := head.fields.get("parent"), str)}


def documents_of_project(store: Store, project: str) -> list[str]:
    return [
        head.id
        for type in PROJECTS
        for head in store.query(type, {"project": project})
        if project_of_document(type, head.fields) == project
    ]


def versions_of(store: Store, ids: Sequence[str]) -> dict[Token, list[tuple[str, str]]]:
    """Every version of these documents and their nicknames: `(type, document id)` by
    transaction."""
    versions: dict[Token, list[tuple[str, str]]] = {}
    for history in _histories(store, ids):
        for head in history:
            versions.setdefault(head.token, []).append((head.type, head.id))
    return versions


def _histories(store: Store, ids: Sequence[str]) -> Iterator[list[Head]]:
    yield from map(store.history, ids)
    id_set = set(ids)
    for name in store.query("nickname"):
        claims = store.history(name.id)
        if any(claim.fields.get("object") in id_set for claim in claims):
            yield claims


def stored_messages(store: Store, addresses: Iterable[str]) -> dict[str, bytes]:
    """Messages by address, as they were put, or what pruning has left of them."""
    unique = set(addresses)
    blobs = store.blobs(unique)
    absent = unique - blobs.keys()
    return blobs | store.left_of(absent) if absent else blobs

"""Which documents and blobs go when a user has a session forgotten.

What belongs to the session alone goes: its chat, records and tool calls, and the objects and
blobs that nothing else refers to. What another session has met stays, and so do the calls that a
fork goes on from. The act itself is erasing (`erase` of the stores); nothing else ever deletes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from foredeck.errors import UnknownSession
from foredeck.model.documents import session_object_id
from foredeck.model.records import nickname_id
from foredeck.store.portable.references import in_message, references
from foredeck.store.portable.scope import documents_of
from foredeck.store.protocol import Head, Store

CHUNK = 500


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What goes. `kept`: objects of the session's index that others have met too; `bytes`: the
    size of the blobs."""

    session: str
    documents: tuple[str, ...]
    blobs: tuple[str, ...]
    bytes: int
    kept: int


def plan_forgetting(store: Store, session: str) -> Forgetting:
    """What erasing a session takes. Reads the whole store once. Raises `UnknownSession`."""
    if store.head(session_object_id(session)) is None:
        raise UnknownSession(f"No session {session!r} is stored.")
    wanted = documents_of(store, session)
    heads = store.heads(wanted)
    needed = _needed_by_forks(store, session)
    doomed = [
        id
        for id in wanted
        if id in heads and id not in needed and _is_alone(store, heads[id], session)
    ]
    doomed += _nicknames(store, (heads[id] for id in doomed))
    gone = set(doomed)
    candidates = _digests(store, doomed)
    for rest in _chunks(_others(store, gone)):
        if not candidates:
            break
        candidates -= _digests(store, rest)
    blobs = store.blobs(sorted(candidates))
    kept = sum(id in heads and heads[id].type in ("file", "toolcall") for id in wanted) - sum(
        heads[id].type in ("file", "toolcall") for id in doomed if id in heads
    )
    size = sum(len(data) for data in blobs.values())
    return Forgetting(session, tuple(doomed), tuple(blobs), size, kept)


def size_of(store: Store, session: str) -> int:
    """Bytes of all texts that a session refers to, those included that others share."""
    digests = _digests(store, documents_of(store, session))
    chunks = _chunks(sorted(digests))
    return sum(len(data) for chunk in chunks for data in store.blobs(chunk).values())


def _needed_by_forks(store: Store, session: str) -> set[str]:
    """Everything that copies of this session, and copies of those, are made of."""
    needed: set[str] = set()
    waiting, seen = [session], {session}
    while waiting:
        for fork in store.query("session", {"parent_session": waiting.pop()}):
            id = str(fork.fields["session_id"])
            if id not in seen:
                seen.add(id)
                waiting.append(id)
                needed.update(documents_of(store, id))
    return needed


def _is_alone(store: Store, head: Head, session: str) -> bool:
    """Whether nobody but this session has to do with a document."""
    fields = head.fields
    owner = fields.get("session") or fields.get("session_id") or fields.get("session_ref")
    if head.type in ("session", "chat", "system_prompt", "turn", "member", "call", "compaction"):
        return owner is None or owner == session
    members = store.query("member", {"object": head.id})
    return all(member.fields["session"] == session for member in members)


def _nicknames(store: Store, heads: Iterable[Head]) -> list[str]:
    names = {nickname_id(name) for head in heads if (name := head.fields.get("nickname"))}
    return list(store.heads(sorted(names)))


def _others(store: Store, gone: set[str]) -> Iterator[str]:
    """Ids of all documents that stay."""
    seen, token = set(gone), None
    while changes := store.changes_since(token, limit=5000):
        token = changes[-1].token
        for change in changes:
            if change.id not in seen:
                seen.add(change.id)
                yield change.id


def _digests(store: Store, ids: Iterable[str]) -> set[str]:
    """Blobs that these documents need, in any of their versions."""
    found: set[str] = set()
    messages: set[str] = set()
    for id in ids:
        for head in store.history(id):
            named = references(head.type, head.fields)
            messages |= named.messages
            found |= named.needed | named.possible
            if isinstance(text := head.fields.get("text_hash"), str):
                found.add(text)
    for chunk in _chunks(sorted(messages)):
        for data in store.blobs(chunk).values():
            found |= in_message(data)
    return found | messages


def _chunks(ids: Iterable[str]) -> Iterator[list[str]]:
    """The ids, `CHUNK` at a time."""
    rest = iter(ids)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk

"""Which documents and blobs go when a user has a session forgotten.

What belongs to the session alone goes: its chat, records and tool calls, and the objects and
blobs that nothing else refers to. What another session has met stays, and so do the calls that a
fork goes on from. The act itself is erasing (`erase` of the stores); nothing else ever deletes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


def plan_forgetting(store: Store, sessions: Sequence[str]) -> list[Forgetting]:
    """What erasing these sessions takes, one after the other in this order. Reads the whole store
    once, however many they are. Raises `UnknownSession`."""
    for session in sessions:
        if store.head(session_object_id(session)) is None:
            raise UnknownSession(f"No session {session!r} is stored.")
    needed = _needed_by_forks(store, sessions)
    going = set(sessions)
    doomed: dict[str, set[str]] = {}
    kept: dict[str, int] = {}
    for session in sessions:
        wanted = documents_of(store, session)
        heads = store.heads(wanted)
        alone = {id for id in wanted if id in heads and id not in needed}
        alone = {id for id in alone if _is_alone(store, heads[id], going)}
        objects = {id for id, head in heads.items() if head.type in ("file", "toolcall")}
        kept[session] = len(objects & set(wanted) - alone)
        doomed[session] = alone | set(_nicknames(store, (heads[id] for id in alone)))
    _leave_to_the_last(doomed)
    digests = {session: _digests(store, sorted(ids)) for session, ids in doomed.items()}
    _leave_to_the_last(digests)
    candidates = set().union(*digests.values())
    for rest in _chunks(_others(store, set().union(*doomed.values()))):
        if not candidates:
            break
        candidates -= _digests(store, rest)
    plans = []
    for session in sessions:
        blobs = store.blobs(sorted(digests[session] & candidates))
        size = sum(len(data) for data in blobs.values())
        ids = tuple(sorted(doomed[session]))
        plans.append(Forgetting(session, ids, tuple(blobs), size, kept[session]))
    return plans


def _leave_to_the_last(found: dict[str, set[str]]) -> None:
    """What several have goes with the last of them: until then the others still need it."""
    later: set[str] = set()
    for session in reversed(list(found)):
        found[session] -= later
        later |= found[session]


def size_of(store: Store, session: str) -> int:
    """Bytes of all texts that a session refers to, those included that others share."""
    digests = _digests(store, documents_of(store, session))
    chunks = _chunks(sorted(digests))
    return sum(len(data) for chunk in chunks for data in store.blobs(chunk).values())


def _needed_by_forks(store: Store, sessions: Iterable[str]) -> set[str]:
    """Everything that copies of these sessions, and copies of those, are made of."""
    needed: set[str] = set()
    seen = set(sessions)
    waiting = list(seen)
    while waiting:
        for fork in store.query("session", {"parent_session": waiting.pop()}):
            id = str(fork.fields["session_id"])
            if id not in seen:
                seen.add(id)
                waiting.append(id)
                needed.update(documents_of(store, id))
    return needed


def _is_alone(store: Store, head: Head, sessions: set[str]) -> bool:
    """Whether nobody but these sessions has to do with a document."""
    fields = head.fields
    owner = fields.get("session") or fields.get("session_id") or fields.get("session_ref")
    if head.type in ("session", "chat", "system_prompt", "turn", "member", "call", "compaction"):
        return owner is None or owner in sessions
    members = store.query("member", {"object": head.id})
    return all(member.fields["session"] in sessions for member in members)


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

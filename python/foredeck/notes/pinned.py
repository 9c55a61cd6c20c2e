"""The version that a static reference means, and whether it is still what was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from foredeck.model.documents import chat_id
from foredeck.model.records import SAME_TRANSACTION, member_id
from foredeck.notes.graph import Edge
from foredeck.notes.names import HANDLE
from foredeck.sources.versions import MOVED_FROM
from foredeck.store.protocol import Head, Store, Token

_VERIFIED = ("content_hash", "text_hash", "metadata_view_hash")


class NotAsRecorded(ValueError):
    """The version that a static reference means is missing, or has other hashes."""


def pinned_head(store: Store, edge: Edge) -> Head | None:
    """The version that a static reference means, without content; None for a dynamic one.

    Raises `NotAsRecorded`, and what the store raises.
    """
    if not edge.reference.static:
        return None
    pin = edge.pin or _seen_version(store, edge)
    if pin is None:
        raise NotAsRecorded(f"{edge.reference.target} has no v{edge.reference.version}")
    token = str(pin["token"])
    if token == SAME_TRANSACTION:
        owner = store.head(edge.source)
        token = owner.token if owner is not None else token
    head = store.head(edge.target, Token(token))
    if head is None or any(head.fields.get(n) != pin[n] for n in _VERIFIED if n in pin):
        raise NotAsRecorded("what is stored is not the version that was recorded")
    return head


def _seen_version(store: Store, edge: Edge) -> Mapping[str, Any] | None:
    """For `[[@12 v3]]`: the version that a session which has met the file calls so."""
    handle = HANDLE.fullmatch(edge.reference.target)
    if handle is None:
        return None
    for session in _sessions(store, edge.source):
        id = member_id(session, int(handle["ordinal"]))
        for seen in store.history(id):
            pin = seen.fields["pin"]
            if pin["version"] == edge.reference.version and pin["object"] == edge.target:
                own = pin["token"] == SAME_TRANSACTION
                return {**pin, "token": seen.token} if own else dict(pin)
    return None


def _sessions(store: Store, source: str) -> Iterator[str]:
    """The sessions whose handles are meant where an object says `[[@12 v3]]`: a chat's own, and all
    that have met a file, by whatever name it had."""
    if source.startswith(chat_id("")):
        yield source.removeprefix(chat_id(""))
        return
    new, seen = [source], set[str]()
    while new:
        id = new.pop()
        seen.add(id)
        yield from (each.fields["session"] for each in store.query("member", {"object": id}))
        head = store.head(id)
        parents = [] if head is None else (head.fields["provenance"].get("parent_refs") or [])
        before = [ref.removeprefix(MOVED_FROM) for ref in parents if ref.startswith(MOVED_FROM)]
        new += [id for id in before if id not in seen]

"""Which messages lose their text when a user has old ones pruned.

Those that are old, that a summary or an observation stands for, and that no open task is linked
to. Tool results, files and other objects are no messages: they stay, and so does every text that
one of them, or a message that stays, needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.errors import UnknownSession
from foredeck.model.canonical import canonical_json, decode_text
from foredeck.model.documents import session_object_id
from foredeck.model.messages import put_blob
from foredeck.model.portions import portions
from foredeck.model.records import messages_of_turn
from foredeck.pruning.covered import CompactedStretch, observed, summarised
from foredeck.pruning.linked import OpenTaskLinks, linked_to_open_tasks
from foredeck.pruning.stubs import stub_of
from foredeck.search.fetching import time_of
from foredeck.store.protocol import Advance, Head, LocalStore, Looked, Store
from foredeck.store.references import in_message

_CHUNK = 500


@dataclass(frozen=True, slots=True)
class Pruning:
    """What goes of one session.

    messages  by the address of a message: what is left of it, as stored
    texts     hashes of the longer texts that go
    bytes     how much less there is afterwards
    young, uncovered, linked  how many messages stay: for their age, because nothing stands for
              them, because an open task is linked to them
    """

    session: str
    messages: Mapping[str, bytes]
    texts: tuple[str, ...]
    bytes: int
    young: int
    uncovered: int
    linked: int


@dataclass(slots=True)
class _Found:
    """What may go of one session, before it is known what others need."""

    session: str
    messages: dict[str, bytes] = field(default_factory=dict)
    """The stored form by address."""
    turns: set[str] = field(default_factory=set)
    """Ids of the turns all of whose messages may go."""
    stretches: list[CompactedStretch] = field(default_factory=list)
    stays: set[str] = field(default_factory=set)
    """Addresses of messages that stay."""
    young: int = 0
    uncovered: int = 0
    linked: int = 0


def plan_pruning(
    store: LocalStore,
    sessions: Sequence[str],
    before_ms: int,
    advance: Advance = lambda: None,
) -> tuple[list[Pruning], Looked]:
    """What goes of these sessions, and what was looked through for it. `before_ms`: what was
    written earlier is old. Sessions of which nothing goes have a plan as well.

    Reads the whole store once. Raises `UnknownSession`, and `StoreUnavailable` where nobody can say
    what others need.
    """
    for session in sessions:
        if store.head(session_object_id(session)) is None:
            raise UnknownSession(f"No session {session!r} is stored.")
    linked = linked_to_open_tasks(store)
    found = []
    for session in sessions:
        found.append(_found_in(store, session, before_ms, linked))
        advance()
    candidates = {digest for one in found for digest in _candidates(one)}
    needed, looked = store.needed(candidates, _not_asked(store, found), advance)
    needed |= _contents_of_summaries(store, sessions)
    return [_plan(store, one, needed) for one in found], looked


def _found_in(store: Store, session: str, before_ms: int, linked: OpenTaskLinks) -> _Found:
    found = _Found(session, stretches=summarised(store, session))
    covered = observed(store, session).union(*(each.addresses for each in found.stretches))
    for turns in portions(store.query("turn", {"session": session}), _CHUNK):
        stored = store.blobs(
            {address for turn in turns for address in messages_of_turn(turn.fields)}
        )
        for turn in turns:
            messages = {a: stored[a] for a in messages_of_turn(turn.fields) if a in stored}
            _sort_out(found, turn, messages, covered, before_ms, linked.has(session, turn))
    for address in found.stays:
        found.messages.pop(address, None)
    return found


def _sort_out(
    found: _Found,
    turn: Head,
    messages: Mapping[str, bytes],
    covered: set[str],
    before_ms: int,
    is_linked: bool,
) -> None:
    """Which messages of a turn may go, and why the others stay."""
    staying = len(found.stays)
    for address, data in messages.items():
        message = json.loads(decode_text(data))
        if time_of(message, turn.time_ms) >= before_ms:
            found.young += 1
        elif address not in covered:
            found.uncovered += 1
        elif is_linked:
            found.linked += 1
        elif "summary" not in message:  # a summary stands for others
            found.messages[address] = data
            continue
        found.stays.add(address)
    if len(found.stays) == staying:
        found.turns.add(turn.id)


def _candidates(found: _Found) -> Iterator[str]:
    """Hashes of all that may go."""
    for address, data in found.messages.items():
        yield address
        yield from in_message(data)
    for stretch in found.stretches:
        yield from stretch.texts


def _not_asked(store: Store, found: Iterable[_Found]) -> set[str]:
    """Ids of the documents that make do with what is left of a message."""
    ids: set[str] = set()
    for one in found:
        ids |= one.turns
        for type in ("call", "compaction"):
            ids.update(head.id for head in store.query(type, {"session": one.session}))
    return ids


def _contents_of_summaries(store: Store, sessions: Iterable[str]) -> set[str]:
    """Hashes of the summaries themselves, which stay."""
    return {
        str(version.fields.get("text_hash"))
        for session in sessions
        for head in store.query("compaction", {"session": session})
        for version in store.history(head.id)
    }


def _plan(store: Store, found: _Found, needed: set[str]) -> Pruning:
    going = {address: data for address, data in found.messages.items() if address not in needed}
    texts = set[str]().union(*map(in_message, going.values()))
    for stretch in found.stretches:
        # What a compaction holds of its turns goes with the last of their messages.
        if not any(a in found.stays or a in needed for a in stretch.addresses):
            texts |= stretch.texts
    texts -= needed
    sizes = {digest: len(data) for digest, data in store.blobs(texts).items()}
    stubs = {a: canonical_json(_stub(store, data)) for a, data in going.items()}
    freed = sum(map(len, going.values())) + sum(sizes.values()) - sum(map(len, stubs.values()))
    return Pruning(
        session=found.session,
        messages=stubs,
        texts=tuple(sorted(sizes)),
        bytes=freed,
        young=found.young,
        uncovered=found.uncovered,
        linked=found.linked,
    )


def _stub(store: Store, data: bytes) -> dict[str, Any]:
    return stub_of(json.loads(decode_text(data)), store.blob)


def stored_stubs(plan: Pruning, blobs: dict[str, bytes]) -> dict[str, dict[str, str]]:
    """Add what is left of the messages to `blobs`; the marks that name it, by address."""
    return {address: {"$json": put_blob(stub, blobs)} for address, stub in plan.messages.items()}

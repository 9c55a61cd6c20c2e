"""The only way to erase from a store and from what was derived from it.

Derived data is listed in `DERIVED`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from foredeck.config import Config
from foredeck.model.documents import SessionDocument, session_object_id
from foredeck.model.kinds import owner_of, rank_of
from foredeck.model.records import ForgottenDocument, MemberDocument, forgotten_id, imported_id
from foredeck.store.place import StorePlace, store_place
from foredeck.store.protocol import (
    Advance,
    Batch,
    Copyable,
    Head,
    Record,
    ScanMark,
    digests_of,
    order_of,
    portions,
    records_of,
)
from foredeck.store.references import in_message, references
from foredeck.store.sessions import documents_of
from foredeck.store.store import Store

_CHUNK = 200
"""Blobs read at once."""


@dataclass(frozen=True, slots=True)
class ErasureStep:
    """One step of an erasure; `scanned`: how far the store was read for it."""

    sessions: Sequence[str]
    documents: Collection[str]
    blobs: Collection[str]
    scanned: ScanMark


@dataclass(frozen=True, slots=True)
class Erasure:
    """An erasure, in order; `first` is committed before it, such as tombstones."""

    first: Sequence[Batch]
    steps: Sequence[ErasureStep]

    @property
    def documents(self) -> set[str]:
        """Ids of all documents that go."""
        return {id for step in self.steps for id in step.documents}

    @property
    def tombstones(self) -> set[str]:
        return {put.id for batch in self.first for put in batch.puts if put.type == "forgotten"}


DERIVED = {"layers": "foredeck.derived.follower"}
"""Modules of derived data, by folder; each one's `erasing` leaves nothing of the erased text,
however its block ends."""


def records_by_time(store: Store) -> list[Record]:
    """All transactions, oldest first."""
    records = [
        Record(record.origin, tuple(sorted(record.changes, key=_rank)))
        for record in records_of(store)
    ]
    return sorted(records, key=lambda record: order_of(record.origin))


def _rank(change: tuple[str, str]) -> tuple[int, str]:
    id, type = change
    return rank_of(type), id


def blobs_of(
    store: Copyable, digests: Iterable[str], advance: Advance = lambda: None
) -> Iterator[tuple[str, bytes]]:
    """Blobs by hash; missing ones are skipped."""
    for chunk in portions(digests, _CHUNK):
        yield from store.blobs(chunk).items()
        advance()


def everything(store: Copyable, advance: Advance = lambda: None) -> Iterator[tuple[str, Any]]:
    """Everything in a store by name: fields of versions, and bytes of blobs."""
    for record in records_of(store):
        for document in store.documents(record):
            yield f"{document.type} {document.id}", document.model_dump()
        advance()
    for digest, data in blobs_of(store, digests_of(store), advance):
        yield f"text {digest[:12]}", data


def erase(
    config: Config,
    store: Store,
    erasure: Erasure,
    advance: Callable[[Sequence[str]], None] = lambda _sessions: None,
) -> None:
    """Erases from the configured store; repeatable after an interruption.

    Raises `Conflict` if something came into use since the plan, and `StoreUnavailable`, also while
    commits wait for a database.
    """
    place = store_place(config)
    place.check_settled()
    erase_from(place, config.home, store, erasure, advance)


def erase_from(
    place: StorePlace,
    home: Path,
    store: Store,
    erasure: Erasure,
    advance: Callable[[Sequence[str]], None] = lambda _sessions: None,
) -> None:
    """Like `erase`, from any place and without `check_settled`."""
    with ExitStack() as stack:
        for module in DERIVED.values():
            stack.enter_context(import_module(module).erasing(home, store, erasure))
        for batch in erasure.first:
            store.commit(batch)
        for step in erasure.steps:
            advance(step.sessions)
            place.erase(step.documents, step.blobs, step.scanned)


# Forgetting a session
#
# What belongs to the session alone goes: its chat, records and tool calls, and the objects and
# blobs that nothing else refers to. What another session has met stays, and so do the calls that a
# fork continues.


@dataclass(frozen=True, slots=True)
class Forgetting(ErasureStep):
    """The step that erases a session; `kept` counts its objects that others have met."""

    bytes: int
    kept: int

    @property
    def session(self) -> str:
        return self.sessions[0]


def plan_forgetting(
    store: Store, sessions: Sequence[str], advance: Advance = lambda: None
) -> list[Forgetting]:
    """Plans erasing sessions in this order. Raises `UnknownSession`, and `StoreUnavailable` if
    others' needs are unknown."""
    doomed, shared_counts = _doomed_documents(store, sessions)
    digests = {session: _digests(store, sorted(ids)) for session, ids in doomed.items()}
    _assign_to_the_last(digests)
    candidates: set[str] = set().union(*digests.values())
    needed, scanned = store.needed(candidates, set().union(*doomed.values()), advance)
    plans = []
    for session in sessions:
        sizes = _sizes(store, digests[session] - needed)
        # A session's own document last: as long as it is there the same can be done again.
        ids = sorted(doomed[session], key=lambda id: (id.startswith("session:"), id))
        size = sum(sizes.values())
        plans.append(
            Forgetting([session], ids, tuple(sizes), scanned, size, shared_counts[session])
        )
        advance()
    return plans


def _doomed_documents(
    store: Store, sessions: Sequence[str]
) -> tuple[dict[str, set[str]], dict[str, int]]:
    needed = _needed_by_forks(store, sessions)
    going = set(sessions)
    doomed: dict[str, set[str]] = {}
    shared_counts: dict[str, int] = {}
    is_alone: dict[str, bool] = {}
    for session in sessions:
        ids = [*documents_of(store, session), imported_id(session)]
        heads = store.heads(ids)
        ours = [id for id in ids if id in heads and id not in needed]
        for id in ours:
            if id not in is_alone:
                is_alone[id] = _is_alone(store, heads[id], going)
        alone = {id for id in ours if is_alone[id]}
        objects = {
            id for id, head in heads.items() if head.type in ("file", "toolcall", "user", "pointer")
        }
        shared_counts[session] = len(objects - alone)
        doomed[session] = alone | set(_nicknames(store, alone))
    _assign_to_the_last(doomed)
    return doomed, shared_counts


def _assign_to_the_last(found: dict[str, set[str]]) -> None:
    later: set[str] = set()
    for session in reversed(list(found)):
        found[session] -= later
        later |= found[session]


def erasure_of(plans: Sequence[Forgetting]) -> Erasure:
    """The erasure for one `plan_forgetting`, with tombstones."""
    return Erasure([Batch(puts=[_tombstone(plan).seal() for plan in plans])], plans)


def _tombstone(plan: Forgetting) -> ForgottenDocument:
    return ForgottenDocument(
        id=forgotten_id(plan.session),
        session=plan.session,
        documents=len(plan.documents),
        blobs=len(plan.blobs),
    )


def size_of(store: Store, session: str) -> int:
    """Bytes of a session's texts, shared ones included."""
    return sum(_sizes(store, _digests(store, documents_of(store, session))).values())


def _sizes(store: Store, digests: Iterable[str]) -> dict[str, int]:
    return {digest: len(data) for digest, data in blobs_of(store, sorted(digests))}


def _needed_by_forks(store: Store, sessions: Collection[str]) -> set[str]:
    parents = {
        head.view(SessionDocument).session_id: head.fields.get("parent_session")
        for head in store.query("session")
    }
    needed: set[str] = set()
    for session, parent in parents.items():
        visited = {session}
        while parent in parents and parent not in sessions and parent not in visited:
            visited.add(parent)
            parent = parents[parent]
        goes_on = parent is not None and parent not in visited
        if goes_on and session not in sessions:
            needed.update(documents_of(store, session))
    return needed


def _is_alone(store: Store, head: Head, sessions: Collection[str]) -> bool:
    owner = owner_of(head.type, head.fields)
    if owner is not None and head.type != "toolcall":  # which another session may have met
        return owner in sessions or store.head(session_object_id(owner)) is None
    if head.type == "task":
        return all(_names_only(version, sessions) for version in store.history(head.id))
    # A session lists an object once: not more are read than it takes to find another session.
    members = store.query("member", {"object": head.id}, limit=len(sessions) + 1)
    met_by = [member.view(MemberDocument).session for member in members]
    return len(met_by) <= len(sessions) and all(session in sessions for session in met_by)


def _names_only(version: Head, sessions: Collection[str]) -> bool:
    fields = version.fields
    by = fields["provenance"]["origin"], fields.get("session") or fields["provenance"]["origin"]
    return all(name in sessions for name in by)


def _nicknames(store: Store, objects: set[str]) -> Iterator[str]:
    for claim in store.query("nickname"):
        owner = claim.fields.get("object")
        had = {head.fields.get("object") for head in store.history(claim.id)} - {None}
        if owner in objects or (owner is None and had and had <= objects):
            yield claim.id


def _digests(store: Store, ids: Iterable[str]) -> set[str]:
    digests: set[str] = set()
    messages: set[str] = set()
    for id in ids:
        for head in store.history(id):
            refs = references(head.type, head.fields)
            messages |= refs.messages
            digests |= refs.needed | refs.possible
            if isinstance(text := head.fields.get("text_hash"), str):
                digests.add(text)
    for _, data in blobs_of(store, sorted(messages)):
        digests |= in_message(data)
    return digests | messages

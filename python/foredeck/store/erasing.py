"""The one way to take something out of a store for good, and out of what was made from it; and
which documents and blobs go when a user has a session forgotten.

Which documents and texts go is worked out by those who know why, and stated as data: here, in
`store/purging.py` and in `pruning.py`. Each kind of store erases in its `StorePlace`, and each
room that keeps what it made from the store is listed in `DERIVED`.
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
from foredeck.store.kind import StorePlace, store_kind
from foredeck.store.protocol import (
    Advance,
    Batch,
    Head,
    LocalStore,
    Record,
    ScanMark,
    Store,
    digests_of,
    order_of,
    portions,
    records_of,
)
from foredeck.store.references import in_message, references
from foredeck.store.sessions import documents_of

_CHUNK = 200
"""Blobs that are read at once."""


@dataclass(frozen=True, slots=True)
class ErasureStep:
    """What goes at once. `sessions`: whose it is; `scanned`: how far the store was read when it was
    worked out that nothing else needs it."""

    sessions: Sequence[str]
    documents: Collection[str]
    blobs: Collection[str]
    scanned: ScanMark


@dataclass(frozen=True, slots=True)
class Erasure:
    """What goes, in this order. `first`: what is committed before that, such as tombstones, so that
    an interrupted erasure is known for what it is."""

    first: Sequence[Batch]
    steps: Sequence[ErasureStep]

    @property
    def sessions(self) -> set[str]:
        """The sessions that lose something."""
        return {session for step in self.steps for session in step.sessions}

    @property
    def documents(self) -> set[str]:
        """Ids of all documents that go."""
        return {id for step in self.steps for id in step.documents}

    @property
    def tombstones(self) -> set[str]:
        """Ids of the documents that tell which sessions are gone."""
        return {put.id for batch in self.first for put in batch.puts if put.type == "forgotten"}


DERIVED = {"layers": "foredeck.derived.follower"}
"""What was made from a store and can be made again, by the folder that holds it: a module, whose
function `erasing` is given the state folder, the store and an `Erasure`. What was made of the
erased texts is gone when its block begins, or when it ends, however it ends. The modules are
imported for this: the store knows none of those rooms."""


def records_by_time(store: Store) -> list[Record]:
    """All transactions, the oldest first; in each, what others name by its version comes first."""
    found = [
        Record(record.origin, tuple(sorted(record.changes, key=_rank)))
        for record in records_of(store)
    ]
    return sorted(found, key=lambda record: order_of(record.origin))


def _rank(change: tuple[str, str]) -> tuple[int, str]:
    id, type = change
    return rank_of(type), id


def blobs_of(
    store: Store, digests: Iterable[str], advance: Advance = lambda: None
) -> Iterator[tuple[str, bytes]]:
    """Blobs with their hashes, however many; those that are missing are left out."""
    for chunk in portions(digests, _CHUNK):
        yield from store.blobs(chunk).items()
        advance()


def everything(store: Store, advance: Advance = lambda: None) -> Iterator[tuple[str, Any]]:
    """All that a store holds, each with a name: the fields of each version, the bytes of each blob,
    whether anything names it or not."""
    for record in records_of(store):
        for document in store.documents(record):
            yield f"{document.type} {document.id}", document.model_dump()
        advance()
    for digest, data in blobs_of(store, digests_of(store), advance):
        yield f"text {digest[:12]}", data


def erase(
    config: Config,
    store: LocalStore,
    erasure: Erasure,
    advance: Callable[[Sequence[str]], None] = lambda _sessions: None,
) -> None:
    """Erase from the configured store; `advance` is called with the sessions of each step before it
    is done.

    Interrupted, it can be planned and done again. Raises `Conflict` where something that was to go
    has come into use since the plan, and `StoreUnavailable`, also where commits wait for a
    database: what arrived there after the erasure would stay.
    """
    place = store_kind(config.store).place(config)
    place.check_settled()
    erase_from(place, config.home, store, erasure, advance)


def erase_from(
    place: StorePlace,
    home: Path,
    store: LocalStore,
    erasure: Erasure,
    advance: Callable[[Sequence[str]], None] = lambda _sessions: None,
) -> None:
    """As `erase`, from the store of any place, without `check_settled`. `store`: the same, opened;
    `home`: the state folder that holds what was made from it."""
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
    """The step that erases one session. `kept`: objects of its index that others have met too;
    `bytes`: the size of the blobs."""

    bytes: int
    kept: int

    @property
    def session(self) -> str:
        """The session."""
        return self.sessions[0]


def plan_forgetting(
    store: LocalStore, sessions: Sequence[str], advance: Advance = lambda: None
) -> list[Forgetting]:
    """What erasing these sessions takes, one after the other in this order. Reads the whole store
    once, however many they are; `advance` is called again and again. Raises `UnknownSession`, and
    `StoreUnavailable` where it is not known what others need."""
    doomed, kept = _doomed_documents(store, sessions)
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
        plans.append(Forgetting([session], ids, tuple(sizes), scanned, size, kept[session]))
        advance()
    return plans


def _doomed_documents(
    store: Store, sessions: Sequence[str]
) -> tuple[dict[str, set[str]], dict[str, int]]:
    """By session: the documents that go with it, and how many of its objects stay for others."""
    needed = _needed_by_forks(store, sessions)
    going = set(sessions)
    doomed: dict[str, set[str]] = {}
    kept: dict[str, int] = {}
    is_alone: dict[str, bool] = {}
    for session in sessions:
        wanted = [*documents_of(store, session), imported_id(session)]
        heads = store.heads(wanted)
        ours = [id for id in wanted if id in heads and id not in needed]
        for id in ours:
            if id not in is_alone:
                is_alone[id] = _is_alone(store, heads[id], going)
        alone = {id for id in ours if is_alone[id]}
        objects = {
            id for id, head in heads.items() if head.type in ("file", "toolcall", "user", "pointer")
        }
        kept[session] = len(objects - alone)
        doomed[session] = alone | set(_nicknames(store, alone))
    _assign_to_the_last(doomed)
    return doomed, kept


def _assign_to_the_last(found: dict[str, set[str]]) -> None:
    """What several sessions have goes with the last of them: until then the others need it."""
    later: set[str] = set()
    for session in reversed(list(found)):
        found[session] -= later
        later |= found[session]


def erasure_of(plans: Sequence[Forgetting]) -> Erasure:
    """What the plans of one call of `plan_forgetting` take away, and the tombstones that stay."""
    return Erasure([Batch(puts=[_tombstone(plan).seal() for plan in plans])], plans)


def _tombstone(plan: Forgetting) -> ForgottenDocument:
    return ForgottenDocument(
        id=forgotten_id(plan.session),
        session=plan.session,
        documents=len(plan.documents),
        blobs=len(plan.blobs),
    )


def size_of(store: Store, session: str) -> int:
    """Bytes of all texts that a session refers to, those included that others share."""
    return sum(_sizes(store, _digests(store, documents_of(store, session))).values())


def _sizes(store: Store, digests: Iterable[str]) -> dict[str, int]:
    """Sizes in bytes, of the blobs that exist."""
    return {digest: len(data) for digest, data in blobs_of(store, sorted(digests))}


def _needed_by_forks(store: Store, sessions: Collection[str]) -> set[str]:
    """Everything that copies of these sessions, and copies of those, are made of.

    A copy of a session forgotten earlier may continue any of them: what lay between is gone.
    """
    parents = {
        head.view(SessionDocument).session_id: head.fields.get("parent_session")
        for head in store.query("session")
    }
    needed: set[str] = set()
    for session, parent in parents.items():
        seen = {session}
        while parent in parents and parent not in sessions and parent not in seen:
            seen.add(parent)
            parent = parents[parent]
        goes_on = parent is not None and parent not in seen
        if goes_on and session not in sessions:
            needed.update(documents_of(store, session))
    return needed


def _is_alone(store: Store, head: Head, sessions: Collection[str]) -> bool:
    """Whether no session but these, and such as are gone, uses a document."""
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
    """Whether only these sessions have had to do with a version of a task."""
    fields = version.fields
    by = fields["provenance"]["origin"], fields.get("session") or fields["provenance"]["origin"]
    return all(name in sessions for name in by)


def _nicknames(store: Store, objects: set[str]) -> Iterator[str]:
    """The claims of nicknames that nothing but these objects has, or had, if nothing has it now."""
    for claim in store.query("nickname"):
        owner = claim.fields.get("object")
        had = {head.fields.get("object") for head in store.history(claim.id)} - {None}
        if owner in objects or (owner is None and had and had <= objects):
            yield claim.id


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
    for _, data in blobs_of(store, sorted(messages)):
        found |= in_message(data)
    return found | messages

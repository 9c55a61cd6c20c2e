"""Which documents and blobs go when a user has a session forgotten.

What belongs to the session alone goes: its chat, records and tool calls, and the objects and
blobs that nothing else refers to. What another session has met stays, and so do the calls that a
fork continues.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from foredeck.model.documents import SessionDocument, session_object_id
from foredeck.model.kinds import owner_of
from foredeck.model.records import ForgottenDocument, MemberDocument, forgotten_id, imported_id
from foredeck.store.erasing import Erasure, ErasureStep
from foredeck.store.protocol import Advance, Batch, Head, LocalStore, ScanMark, Store, portions
from foredeck.store.references import in_message, references
from foredeck.store.sessions import documents_of

CHUNK = 500


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What goes. `kept`: objects of the session's index that others have met too; `bytes`: the
    size of the blobs; `scanned`: how far the store was read for it."""

    session: str
    documents: tuple[str, ...]
    blobs: tuple[str, ...]
    bytes: int
    kept: int
    scanned: ScanMark


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
        ids = tuple(sorted(doomed[session]))
        size = sum(sizes.values())
        plans.append(Forgetting(session, ids, tuple(sizes), size, kept[session], scanned))
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
    steps = [
        ErasureStep(
            [plan.session],
            # A session's own document last: as long as it is there the same can be done again.
            sorted(plan.documents, key=lambda id: id.startswith("session:")),
            plan.blobs,
            plan.scanned,
        )
        for plan in plans
    ]
    return Erasure([Batch(puts=[_tombstone(plan).seal() for plan in plans])], steps)


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
    return {
        digest: len(data)
        for chunk in portions(sorted(digests), CHUNK)
        for digest, data in store.blobs(chunk).items()
    }


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
    for chunk in portions(sorted(messages), CHUNK):
        for data in store.blobs(chunk).values():
            found |= in_message(data)
    return found | messages

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from typing import IO, NamedTuple

from foredeck.errors import Conflict, ImportRefused
from foredeck.model.documents import Document, session_object_id
from foredeck.model.kinds import rank_of
from foredeck.model.memory import MOST_PROPOSALS, MemoryState, list_of_user
from foredeck.model.records import ImportedDocument, imported_id
from foredeck.store.clock import now_ms
from foredeck.store.portable.check import Checked, VersionHashes, check_file, load_document
from foredeck.store.portable.export import ProjectPlace, blob_of_line
from foredeck.store.portable.rewriting import FreshIds, MovedProject, Renew, moved_lines, same
from foredeck.store.portable.staged import ImportLimits, StagedFile
from foredeck.store.protocol import Batch, Head, Origin, Token
from foredeck.store.store import Store


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What a file held, and how many of its versions were new.

    `left_out`: ids of what the project here has, or has let go; `crowded`: proposals without room.
    """

    sessions: tuple[str, ...]
    transactions: int
    documents: int
    blobs: int
    new_documents: int
    project: ProjectPlace | None = None
    memory: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    crowded: tuple[str, ...] = ()

    @property
    def session(self) -> str:
        """The session of a session's file."""
        return self.sessions[0]


def import_file(
    store: Store,
    lines: IO[bytes] | Iterable[bytes | str],
    *,
    as_new: bool = False,
    into: ProjectPlace | None = None,
    limits: ImportLimits | None = None,
    clock: Callable[[], int] = now_ms,
    renew: Renew = same,
) -> ImportSummary:
    """Imports a file of `export_session` or `export_project`, after checking everything.

    `as_new`: fresh ids. `into`: the project that it becomes. Raises `ImportRefused` for a damaged,
    forged, oversized or contradictory file; `StoreError`. Repeatable if interrupted.
    """
    limits = limits or ImportLimits()
    with ExitStack() as stack:

        def staged_and_checked(lines: IO[bytes] | Iterable[bytes | str]) -> CheckedFile:
            staged = stack.enter_context(closing(StagedFile(lines, limits)))
            try:
                return CheckedFile(staged, check_file(staged, limits, clock()))
            except OSError as error:
                raise ImportRefused(
                    f"it cannot be read, or its temporary copy not written: {error}"
                ) from error

        read, left_out = staged_and_checked(lines), list[str]()
        was = read.checked.ownership.project
        if was is not None and as_new:
            raise ImportRefused("a project keeps its ids: import it without --as-new")
        if was is not None and into is not None and was != into:
            ownership = read.checked.ownership
            files = {
                id: path
                for id, path in ownership.files.items()
                if _may_lie_there(store, read.checked, id, MovedProject(was, into, {id: path}))
            }
            left_out = sorted(ownership.files.keys() - files - ownership.objects)
            # As a file of its own, which is checked and compared like any other.
            moving = MovedProject(was, into, files, renew)
            read = staged_and_checked(moved_lines(read.staged, moving, left_out))
        return _take(store, read, renew if as_new else None, left_out)


class CheckedFile(NamedTuple):
    """A fully read file, and its contents."""

    staged: StagedFile
    checked: Checked


def _may_lie_there(store: Store, checked: Checked, id: str, moving: MovedProject) -> bool:
    """Whether a project file may take its new place, which may have another history."""
    history = store.history(moving.moved_id(id))
    tokens = {version.token for version in checked.versions[id]}
    return not history or any(head.token in tokens for head in history)


def _take(
    store: Store, read: CheckedFile, renew: Renew | None, left_out: Iterable[str]
) -> ImportSummary:
    staged, checked = read
    ownership = checked.ownership
    own, compared = ownership.own, set(checked.versions)
    skipped, crowded = _staying(store, checked), _crowded(store, checked, as_new=renew is not None)
    sessions, fresh = tuple(ownership.sessions), None
    if renew is not None:
        fresh = FreshIds(sessions[0], own, renew)
        sessions = (fresh.session,)
        # Nicknames of the session's own objects stay with the originals.
        skipped = {id for id, objects in ownership.claims.items() if objects & own.keys()}
        compared = {*ownership.foreign}
    out = skipped | crowded
    counts = count_new(store, checked, compared - out)
    new = counts.total()
    if fresh is not None:
        new += sum(len(checked.versions[id]) for id in own.keys() - out)
    came = {own[id]: None for id in counts if id in own}
    try:
        if new:
            # Of a project's sessions those that are here as they are stay what they are.
            for session in sessions if ownership.project is None else came:
                _mark(store, session)
        _write(store, staged, fresh, out)
    except Conflict as error:
        raise ImportRefused(
            f"the store was changed during the import ({error}): import the file again"
        ) from error
    return ImportSummary(
        sessions,
        transactions=checked.counts.transactions,
        documents=checked.counts.documents,
        blobs=checked.counts.blobs,
        new_documents=new,
        project=ownership.project,
        memory=tuple(sorted(id for id, type in ownership.foreign.items() if type == "memory")),
        left_out=() if fresh else (*sorted(skipped), *left_out),
        crowded=tuple(sorted(crowded)),
    )


def _staying(store: Store, checked: Checked) -> set[str]:
    """A project file's page and memory that it has otherwise, and memory that would come back."""
    back = {id for id, (_, state) in checked.memory.items() if _revives(store, checked, id, state)}
    if checked.ownership.project is None:
        return back
    own = [id for id, type in checked.ownership.foreign.items() if type in ("working", "memory")]
    return back | {id for id in own if not _hashes(store.history(id)) <= {*checked.versions[id]}}


def _revives(store: Store, checked: Checked, id: str, state: MemoryState) -> bool:
    """Whether a file continues an entry against its life: proposed, kept, gone."""
    # The user's word covers what an entry says, and not its state: whoever has a file of theirs
    # could undo what they have deleted or refused.
    head = store.head(id)
    if head is None or head.token not in {version.token for version in checked.versions[id][:-1]}:
        return False
    return state in ("proposed", "kept") and head.fields["state"] not in ("proposed", state)


def _crowded(store: Store, checked: Checked, *, as_new: bool) -> set[str]:
    room, crowded = dict[str, int](), set[str]()
    for id, (owner, state) in sorted(checked.memory.items()):
        if state != "proposed" or (not as_new and store.head(id) is not None):
            continue
        if owner not in room:
            there = {"object": list_of_user(owner), "state": "proposed"}
            room[owner] = MOST_PROPOSALS - len(store.query("memory", there))
        room[owner] -= 1
        if room[owner] < 0:
            crowded.add(id)
    return crowded


def _hashes(history: Iterable[Head]) -> set[VersionHashes]:
    return {VersionHashes.of(head.token, head.view(Document)) for head in history}


def _mark(store: Store, session: str) -> None:
    id = imported_id(session)
    if store.head(id) is None:
        mark = ImportedDocument(id=id, session=session).seal()
        store.commit(Batch([mark], expect={id: None}))


def _write(store: Store, staged: StagedFile, fresh: FreshIds | None, skipped: set[str]) -> None:
    for origin, batch in _transactions(staged):
        batch.puts.sort(key=lambda document: rank_of(document.type))
        selection = (document for document in batch.puts if document.id not in skipped)
        batch.puts = [fresh.document(document) if fresh else document for document in selection]
        store.commit(batch, origin=origin)


def _transactions(staged: StagedFile) -> Iterator[tuple[Origin, Batch]]:
    origin, batch = None, Batch()
    for line in islice(staged.again(), 1, None):  # the first was read for its session alone
        if "document" in line:
            batch.puts.append(load_document(line["document"], staged))
        elif "blob" in line:
            batch.blobs[line["blob"]] = blob_of_line(line)
        elif "transaction" in line or "end" in line:
            if origin is not None:
                yield origin, batch
            if "transaction" in line:
                origin, batch = Origin(**line["transaction"]), Batch()


# Whether a file agrees with what the store holds already.
#
# What both have must be equal. A document with newer versions in the file alone is continued; one
# with different newer versions in both is a contradiction. Files are the exception: two stores on
# one machine each see the same files change, and their histories go together by time.


def count_new(store: Store, checked: Checked, ids: Iterable[str]) -> Counter[str]:
    """New versions per document. Raises `ImportRefused` if the file contradicts the store."""
    for transaction in store.transactions(checked.times):
        if checked.times[transaction.token] != transaction.time_ms:
            raise ImportRefused(f"transaction {transaction.token!r} has another time in the store")
    # In order, so that of several contradictions every run names the same one.
    counts = +Counter({id: _count_one(id, checked, store.history(id)) for id in sorted(ids)})
    _check_others(store, checked, counts.keys())
    return counts


def _check_others(store: Store, checked: Checked, new: Collection[str]) -> None:
    """Keeps existing sessions from getting anything from another's file."""
    owners = {id: owner for id, owner in checked.ownership.owners.items() if id in new}
    here = store.heads({session_object_id(owner) for owner in owners.values()})
    for id, owner in sorted(owners.items()):
        if session_object_id(owner) in here:
            raise ImportRefused(
                f"{id!r} belongs to session {owner!r}, which is in the store without it: import"
                " a newer export of that session first"
            )


def _count_one(id: str, checked: Checked, history: list[Head]) -> int:
    versions = checked.versions[id]
    if not history:
        return len(versions)
    local = {version.token: version for version in _hashes(history)}
    newest = history[-1]
    if newest.type != checked.types[id]:
        raise ImportRefused(f"{id!r} is a {newest.type} in the store")
    if local[newest.token].identity_hash != versions[0].identity_hash:
        raise ImportRefused(f"{id!r} has another source in the store")
    for version in versions:
        if local.get(version.token, version) != version:
            raise ImportRefused(f"{id!r} has other fields in the store at {version.token!r}")
    new = [version for version in versions if version.token not in local]
    if new:
        _check_continues(id, checked, [head.token for head in history], newest)
    return len(new)


def _check_continues(id: str, checked: Checked, local: list[Token], newest: Head) -> None:
    tokens = [version.token for version in checked.versions[id]]
    if local == tokens[: len(local)] or newest.type == "file":
        return
    if newest.type == "nickname":
        owner = newest.fields.get("object")
        if checked.ownership.claims[id] == {owner}:
            return
        name = id.removeprefix("nickname:")
        raise ImportRefused(
            f"the nickname {name!r} belongs to {owner!r} in this store: rename that first"
        )
    of_session = checked.ownership.project is None
    way = ": import it under fresh ids (--as-new)" if of_session else ": it went on in both"
    raise ImportRefused(f"{id!r} has different newer versions in the store and in the file{way}")

"""Reading a session in: check everything, then write it, transaction by transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import IO

from foredeck.errors import Conflict, ImportRefused
from foredeck.model.documents import Document
from foredeck.model.kinds import rank_of
from foredeck.model.records import ImportedDocument, imported_id
from foredeck.store.clock import now_ms
from foredeck.store.portable.agreement import count_new
from foredeck.store.portable.check import Checked, check_file, load_document
from foredeck.store.portable.fresh import FreshIds
from foredeck.store.portable.lines import ImportLimits, StagedFile, blob_of_line
from foredeck.store.protocol import Batch, Origin, Store


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What a file held, and how many of its versions were new to the store.

    `session` is the id under which the session is now stored.
    """

    session: str
    transactions: int
    documents: int
    blobs: int
    new_documents: int


@dataclass(slots=True)
class _Group:
    """The lines of one transaction."""

    origin: Origin
    blobs: dict[str, bytes] = field(default_factory=dict)
    documents: list[Document] = field(default_factory=list)


def import_file(
    store: Store,
    lines: IO[bytes] | Iterable[bytes | str],
    *,
    as_new: bool = False,
    limits: ImportLimits | None = None,
    clock: Callable[[], int] = now_ms,
    renew: Callable[[Document, Document], None] = lambda _before, _now: None,
) -> ImportSummary:
    """Read a session that `export_session` has written.

    `lines`: an open binary file, or its lines. It is read once, into a temporary copy; nothing
    is written to the store before all of it is checked. What is there already is left alone.
    `as_new` gives the session and all that is its own fresh ids; `renew`: as of `FreshIds`.
    Raises `ImportRefused` for a file that is damaged, forged, over the limits, or contradicts
    the store; `StoreError` where the store fails. An import that was cut short can be repeated.
    """
    limits = limits or ImportLimits()
    with closing(StagedFile(lines, limits)) as staged:
        try:
            checked = check_file(staged, limits, clock())
        except OSError as error:
            raise ImportRefused(
                f"it cannot be read, or its temporary copy not written: {error}"
            ) from error
        fresh = FreshIds(checked.session, checked.ownership.own, renew) if as_new else None
        skipped = _own_claims(checked) if as_new else set()
        compared = checked.ownership.foreign if as_new else checked.versions
        new = count_new(store, checked, [id for id in compared if id not in skipped])
        new += _own_versions(checked, fresh)
        session = fresh.session if fresh else checked.session
        try:
            if new:
                _mark(store, session)
            _write(store, staged, fresh, skipped)
        except Conflict as error:
            raise ImportRefused(
                f"the store was changed during the import ({error}): import the file again"
            ) from error
    return ImportSummary(
        session=session,
        transactions=checked.counts.transactions,
        documents=checked.counts.documents,
        blobs=checked.counts.blobs,
        new_documents=new,
    )


def _mark(store: Store, session: str) -> None:
    """Say first that it was imported: an import that is cut short leaves nothing unmarked."""
    id = imported_id(session)
    if store.head(id) is None:
        mark = ImportedDocument(id=id, session=session).seal()
        store.commit(Batch([mark], expect={id: None}))


def _own_claims(checked: Checked) -> set[str]:
    """Nickname claims on the session's own objects: those names stay with the originals."""
    return {id for id, objects in checked.claims.items() if objects & checked.ownership.own}


def _own_versions(checked: Checked, fresh: FreshIds | None) -> int:
    """Versions that are new because their ids are."""
    if fresh is None:
        return 0
    return sum(len(checked.versions[id]) for id in checked.ownership.own)


def _write(store: Store, staged: StagedFile, fresh: FreshIds | None, skipped: set[str]) -> None:
    for group in _groups(staged):
        group.documents.sort(key=lambda document: rank_of(document.type))
        kept = (document for document in group.documents if document.id not in skipped)
        puts = [fresh.document(document) if fresh else document for document in kept]
        store.commit(Batch(puts=puts, blobs=group.blobs), origin=group.origin)


def _groups(staged: StagedFile) -> Iterator[_Group]:
    """The transactions of a file that has been checked, one after the other."""
    group: _Group | None = None
    for line in staged.again():
        if "transaction" in line or "end" in line:
            if group is not None:
                yield group
            if "transaction" in line:
                group = _Group(Origin(**line["transaction"]))
        elif group is not None and "blob" in line:
            group.blobs[line["blob"]] = blob_of_line(line)
        elif group is not None:
            group.documents.append(load_document(line["document"], staged))

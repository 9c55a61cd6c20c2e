"""Reading a session in: check everything, then write it, transaction by transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import IO, Any

from foredeck.errors import Conflict, ImportRefused
from foredeck.model.documents import Document, session_object_id
from foredeck.model.ids import uuid7
from foredeck.model.kinds import owner_of, rank_of
from foredeck.model.records import ImportedDocument, imported_id
from foredeck.store.clock import now_ms
from foredeck.store.portable.check import (
    PREFIXES,
    Checked,
    ImportLimits,
    StagedFile,
    VersionHashes,
    check_file,
    load_document,
)
from foredeck.store.portable.export import blob_of_line
from foredeck.store.protocol import Batch, Head, Origin, Store, Token


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


# Whether a file agrees with what the store holds already.
#
# What both have must be equal. A document with newer versions in the file alone is continued; one
# with different newer versions in both is a contradiction. Files are the exception: two stores on
# one machine each see the same files change, and their histories go together by time.


@dataclass(frozen=True, slots=True)
class _Local:
    """A document's history in the store, reduced to what is compared."""

    type: str
    identity_hash: str
    versions: dict[Token, VersionHashes]
    object: str | None


def count_new(store: Store, checked: Checked, ids: Iterable[str]) -> int:
    """How many versions of the documents `ids` are not in the store.

    Raises `ImportRefused` where the file contradicts the store, also in the transactions' times.
    """
    for known in store.transactions(checked.times):
        if checked.times[known.token] != known.time_ms:
            raise ImportRefused(f"transaction {known.token!r} has another time in the store")
    counts = {id: _count_one(id, checked, store.history(id)) for id in ids}
    _check_others(store, checked, {id for id, count in counts.items() if count})
    return sum(counts.values())


def _check_others(store: Store, checked: Checked, new: set[str]) -> None:
    """A session that is here gets nothing from the file of another one."""
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
    local = _local(history)
    if local.type != checked.types[id]:
        raise ImportRefused(f"{id!r} is a {local.type} in the store")
    if local.identity_hash != versions[0].identity_hash:
        raise ImportRefused(f"{id!r} has another source in the store")
    for version in versions:
        if local.versions.get(version.token, version) != version:
            raise ImportRefused(f"{id!r} has other fields in the store at {version.token!r}")
    new = [version for version in versions if version.token not in local.versions]
    if new:
        _check_continues(id, checked, local)
    return len(new)


def _local(history: list[Head]) -> _Local:
    versions = {h.token: VersionHashes.of(h.token, h.view(Document)) for h in history}
    newest = history[-1]
    claimed = newest.fields.get("object") if newest.type == "nickname" else None
    return _Local(newest.type, newest.view(Document).identity_hash, versions, claimed)


def _check_continues(id: str, checked: Checked, local: _Local) -> None:
    """The file has versions that are new here: they must come after all that are here."""
    tokens = [version.token for version in checked.versions[id]]
    if list(local.versions) == tokens[: len(local.versions)] or local.type == "file":
        return
    if local.type == "nickname":
        if checked.claims[id] == {local.object}:
            return
        name = id.removeprefix("nickname:")
        raise ImportRefused(
            f"the nickname {name!r} belongs to {local.object!r} in this store: rename that first"
        )
    raise ImportRefused(
        f"{id!r} has different newer versions in the store and in the file:"
        " import it under fresh ids (--as-new)"
    )


_HASHES = frozenset({"content_hash", "metadata_view_hash"})
_REFERENCES = frozenset(
    {
        "id",
        "answers",
        "call",
        "chat_ref",
        "entries_kept",
        "entries_proposed",
        "file_pin",
        "file_refs",
        "object",
        "observations",
        "parent",
        "parent_ref",
        "pin",
        "previous",
        "provenance",
        "replaces",
        "session",
        "session_id",
        "session_ref",
        "superseded_by",
        "system",
        "system_prompt_ref",
        "toolcall_ids",
        "turn",
        "turn_ref",
    }
)
"""Fields that refer to documents. All others stay as they are, the bytes that the model saw
(`parts`, `inserts`) and the words of others (`args`, `details`) above all."""


def _same(_before: Document, _now: Document) -> None:
    """Nothing but ids changes."""


class FreshIds:
    """Rewrites a session's own documents; what it shares with other sessions stays as it is.

    Documents must come in the order in which they pin each other, pinned ones first.
    """

    def __init__(
        self, session: str, own: Iterable[str], renew: Callable[[Document, Document], None] = _same
    ) -> None:
        """`own`: ids of all documents that are the session's own. `renew` may change a document
        that has got its fresh ids, given as it was and as it is, before it is sealed."""
        self.session = uuid7()
        self._old = session
        self._renew = renew
        self._ids = {id: self._assigned(id) or _like(id) for id in own}
        self._hashes: dict[str, str] = {}

    def document(self, document: Document) -> Document:
        """The document under its new id, sealed again; an object of others stays as it is."""
        body = document.model_dump()
        if owner_of(document.type, body) != self._old:
            return document
        fresh = {k: self._value(v) if k in _REFERENCES else v for k, v in body.items()}
        # A nickname means one object at a time, and it means the original.
        fresh["nickname"] = None
        if document.type == "session":
            fresh["provenance"]["parent_refs"].append(document.id)
        rewritten = type(document).model_validate(fresh)
        self._renew(document, rewritten)
        rewritten.seal()
        self._hashes[document.content_hash] = rewritten.content_hash
        self._hashes[document.metadata_view_hash] = rewritten.metadata_view_hash
        return rewritten

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return {
                key: self._hashes.get(item, item)
                if key in _HASHES and isinstance(item, str)
                else self._value(item)
                for key, item in value.items()
            }
        return value

    def _text(self, text: str) -> str:
        """A reference, rewritten; any other text as it is."""
        if text == self._old:
            return self.session
        return self._ids.get(text) or self._assigned(text) or text

    def _assigned(self, id: str) -> str | None:
        """The new form of an id that contains the session's; None for any other text."""
        for prefix in PREFIXES:
            start = f"{prefix}:{self._old}"
            if id == start or id.startswith(start + ":"):
                return f"{prefix}:{self.session}{id[len(start) :]}"
        return None


def _like(id: str) -> str:
    """A new id of the same form."""
    prefix, colon, _ = id.rpartition(":")
    return f"{prefix}{colon}{uuid7()}" if prefix in PREFIXES else uuid7()

"""Reading a session in: check everything, then write it, transaction by transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
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
        own, compared, skipped = checked.ownership.own, set(checked.versions), set[str]()
        if as_new:
            # Nicknames of the session's own objects stay with the originals.
            skipped = {id for id, objects in checked.ownership.claims.items() if objects & own}
            compared = checked.ownership.foreign.keys() - skipped
        new = count_new(store, checked, compared)
        if as_new:
            new += sum(len(checked.versions[id]) for id in own)
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


def _write(store: Store, staged: StagedFile, fresh: FreshIds | None, skipped: set[str]) -> None:
    for origin, batch in _transactions(staged):
        batch.puts.sort(key=lambda document: rank_of(document.type))
        kept = (document for document in batch.puts if document.id not in skipped)
        batch.puts = [fresh.document(document) if fresh else document for document in kept]
        store.commit(batch, origin=origin)


def _transactions(staged: StagedFile) -> Iterator[tuple[Origin, Batch]]:
    """The transactions of a file that has been checked, one after the other."""
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


def count_new(store: Store, checked: Checked, ids: Iterable[str]) -> int:
    """How many versions of the documents `ids` are not in the store.

    Raises `ImportRefused` where the file contradicts the store, also in the transactions' times.
    """
    for known in store.transactions(checked.times):
        if checked.times[known.token] != known.time_ms:
            raise ImportRefused(f"transaction {known.token!r} has another time in the store")
    # In order, so that of several contradictions every run names the same one.
    counts = {id: _count_one(id, checked, store.history(id)) for id in sorted(ids)}
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
    local = {h.token: VersionHashes.of(h.token, h.view(Document)) for h in history}
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
        _check_continues(id, checked, list(local), newest)
    return len(new)


def _check_continues(id: str, checked: Checked, local: list[Token], newest: Head) -> None:
    """The file has versions that are new here: they must come after all that are here."""
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
    raise ImportRefused(
        f"{id!r} has different newer versions in the store and in the file:"
        " import it under fresh ids (--as-new)"
    )


_HASHES = frozenset({"content_hash", "metadata_view_hash"})
_REFERENCES = frozenset(
    {
        *(
            "id",
            "answers",
            "call",
            "chat_ref",
            "entries_kept",
            "entries_proposed",
            "file_version_ref",
        ),
        *("file_refs", "object", "observations", "parent", "parent_ref", "version_ref", "previous"),
        *("provenance", "replaces", "session", "session_id", "session_ref", "superseded_by"),
        *("system", "system_prompt_ref", "toolcall_ids", "turn", "turn_ref"),
    }
)
"""Fields that refer to documents. All others stay as they are, the bytes that the model saw
(`parts`, `says`) and the words of others (`args`, `details`) above all."""


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

"""Putting a text out of everything that a store keeps, in all versions, as if it had been another.

A store rewrites nothing, so what holds the text is taken out and committed again under the same
transactions, without it. In between nothing of it would be left but a file in the state folder,
which is written first: an interrupted purge is finished by the next one.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from foredeck.config import Config
from foredeck.errors import Conflict, Corrupt, ForedeckError
from foredeck.model.canonical import hash_text
from foredeck.model.documents import Document
from foredeck.model.kinds import kind_of, rank_of
from foredeck.model.portions import portions
from foredeck.model.records import nickname_id
from foredeck.model.user_objects import user_object_id
from foredeck.regular_files import open_to_read
from foredeck.store.at_work import engines_at_work
from foredeck.store.location import holders, private_draft
from foredeck.store.opening import PENDING_PURGE
from foredeck.store.portable.lines import blob_line, blob_of_line
from foredeck.store.protocol import (
    Advance,
    Batch,
    LocalStore,
    Looked,
    Origin,
    Store,
    Token,
    silent,
)
from foredeck.store.redaction import OWN_WORDS, Redaction, Renaming
from foredeck.store.references import RECORDS, references
from foredeck.store.registry import store_kind
from foredeck.store.sqlite.adapter import SqliteStore, open_sqlite
from foredeck.store.whole import WholeStore, digests_of

_CHUNK = 500

Amend = Callable[[Document, Document], None]
"""Called with a document and what it becomes, before that is sealed."""


class PurgeRefused(ForedeckError):
    """A text cannot be purged; says why, and what to do."""

    exit_code = 2


def as_it_is(_before: Document, _after: Document) -> None:
    """An `Amend` that changes nothing."""


@dataclass(slots=True)
class Purge:
    """What a purge changes. `versions`: what is committed again, by transaction, the oldest first;
    `ids` and `stale`: documents and blobs that go before that; `changed`: how many versions hold
    the text, by type; `sessions`: whose prompts are not byte for byte what was sent any more."""

    ids: set[str] = field(default_factory=set)
    versions: dict[Origin, list[Document]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    stale: set[str] = field(default_factory=set)
    changed: dict[str, int] = field(default_factory=dict)
    sessions: set[str] = field(default_factory=set)
    looked: Looked | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing holds the text, and nothing is to go."""
        return not self.ids and not self.stale


class PurgedPlace(ABC):
    """A store that something is purged from. `name`: what a user calls it; `pending`: what an
    interrupted purge still has to write."""

    name: str
    pending: Path
    is_one_file = True

    @abstractmethod
    def open(self) -> LocalStore:
        """Open it. Raises `StoreUnavailable`."""

    def other_blobs(self, known: Collection[str]) -> Iterator[tuple[str, bytes]]:  # noqa: ARG002
        """The blobs of which the opened store knows nothing."""
        return iter(())

    @abstractmethod
    def erase(self, ids: Collection[str], blobs: Collection[str], looked: Looked) -> None:
        """See `StoreKind.erase`."""

    @abstractmethod
    def finish(self) -> list[str]:
        """See `StoreKind.finish_erasing`."""

    @abstractmethod
    def wholes(self) -> Iterator[WholeStore]:
        """All that holds something of it, one after the other, to be closed. Raises
        `StoreUnavailable`."""


class ConfiguredStore(PurgedPlace):
    """The store that the configuration names."""

    name = "the store"

    def __init__(self, config: Config) -> None:
        self._config, self._kind = config, store_kind(config.store)
        self.pending = config.home / PENDING_PURGE
        self.is_one_file = self._kind.is_one_file

    def open(self) -> LocalStore:
        """See `PurgedPlace.open`."""
        return self._kind.open(self._config, notify=silent, lazy=True)

    def other_blobs(self, known: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """See `PurgedPlace.other_blobs`."""
        return self._kind.other_blobs(self._config, known)

    def erase(self, ids: Collection[str], blobs: Collection[str], looked: Looked) -> None:
        """See `PurgedPlace.erase`."""
        self._kind.erase(self._config, ids, blobs, looked)

    def finish(self) -> list[str]:
        """See `PurgedPlace.finish`."""
        return self._kind.finish_erasing(self._config)

    def wholes(self) -> Iterator[WholeStore]:
        """See `PurgedPlace.wholes`."""
        yield self._kind.open_whole(self._config)
        if not self.is_one_file:
            yield open_sqlite(self._kind.file(self._config))


class StoreFile(PurgedPlace):
    """A store in a file that was kept when another took its place."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name
        self.pending = path.with_name(f"purge-{path.name}.jsonl")

    def open(self) -> SqliteStore:
        """See `PurgedPlace.open`."""
        return open_sqlite(self.path)

    def erase(self, ids: Collection[str], blobs: Collection[str], looked: Looked) -> None:
        """See `PurgedPlace.erase`."""
        with closing(self.open()) as store:
            store.erase(ids, blobs, looked)

    def finish(self) -> list[str]:
        """See `PurgedPlace.finish`."""
        with closing(self.open()) as store:
            store.vacuum()
        return []

    def wholes(self) -> Iterator[WholeStore]:
        """See `PurgedPlace.wholes`."""
        yield self.open()


def plan_purge(
    place: PurgedPlace,
    store: LocalStore,
    redaction: Redaction,
    erased: Collection[str] = (),
    amend: Amend = as_it_is,
    advance: Advance = lambda: None,
) -> Purge:
    """What purging takes from the opened store of a place. `erased`: documents that go altogether.
    Reads the whole store twice, every version and every blob.

    Raises `PurgeRefused`.
    """
    for word in OWN_WORDS:
        if redaction.text(word) != word:
            raise PurgeRefused(
                f"That would remove {word!r} from every message: give more of the text."
            )
    listed = _listed(store, advance)
    renaming = Renaming(redaction)
    _rename_blobs(place, store, listed, renaming, advance)
    purge = Purge(set(erased), blobs=renaming.blobs, stale=renaming.stale)
    changed = _changed(store, listed, renaming, purge, amend, advance)
    for origin, versions in listed.items():
        again = []
        for type, id in versions:
            if id in purge.ids and id not in erased:
                document = changed.get((origin.token, id))
                again.append(document or _load(store, type, id, origin.token))
        if again:
            purge.versions[origin] = again
    left, purge.looked = store.needed(purge.stale, purge.ids, advance)
    if left:
        raise PurgeRefused(f"{len(left)} texts are named where they cannot be told: not purged")
    return purge


def _listed(store: Store, advance: Advance) -> dict[Origin, list[tuple[str, str]]]:
    """All versions, as types and ids, by transaction: the oldest first, what others name first."""
    found: dict[Token, list[tuple[str, str]]] = {}
    token: Token | None = None
    while changes := store.changes_since(token):
        for change in changes:
            found.setdefault(change.token, []).append((change.type, change.id))
        token = changes[-1].token
        advance()
    return {
        origin: sorted(found[origin.token], key=lambda version: (rank_of(version[0]), version[1]))
        for origin in store.transactions(found)
    }


def _rename_blobs(
    place: PurgedPlace,
    store: LocalStore,
    listed: Mapping[Origin, Sequence[tuple[str, str]]],
    renaming: Renaming,
    advance: Advance,
) -> None:
    """All blobs, those that nothing names as well; what names others comes last."""
    messages: set[str] = set()
    for origin, versions in listed.items():
        for type, id in versions:
            if type in RECORDS and (head := store.head(id, origin.token)) is not None:
                messages |= references(head.type, head.fields).messages
        advance()
    digests = set(digests_of(store))
    for digest, data in _fetched(store, digests - messages, advance):
        renaming.leaf(digest, data)
    for digest, data in place.other_blobs(digests):
        renaming.leaf(digest, data)
    for address, data in _fetched(store, messages, advance):
        renaming.message(address, data)


def _fetched(store: Store, digests: Iterable[str], advance: Advance) -> Iterator[tuple[str, bytes]]:
    for chunk in portions(sorted(digests), _CHUNK):
        yield from store.blobs(chunk).items()
        advance()


def _changed(
    store: Store,
    listed: Mapping[Origin, Sequence[tuple[str, str]]],
    renaming: Renaming,
    purge: Purge,
    amend: Amend,
    advance: Advance,
) -> dict[tuple[Token, str], Document]:
    """The versions that become others, by transaction and old id. Notes in `purge` which they
    are."""
    found: dict[tuple[Token, str], Document] = {}
    for origin, versions in listed.items():
        for type, id in versions:
            document = _load(store, type, id, origin.token)
            fresh = _redacted(document, renaming, amend)
            if fresh is None:
                continue
            found[origin.token, id] = fresh
            purge.ids.add(id)
            purge.changed[type] = purge.changed.get(type, 0) + 1
            if type in ("turn", "call"):
                purge.sessions.add(str(document.model_dump().get("session")))
        advance()
    return found


def _redacted(document: Document, renaming: Renaming, amend: Amend) -> Document | None:
    """What a version becomes; None where it stays. What its hashes are called then is noted."""
    before = document.model_dump()
    body = renaming.body(before)
    if body == before:
        return None
    try:
        fresh = type(document).model_validate(body)
    except ValidationError as error:
        raise PurgeRefused(
            f"{document.type} {document.id!r} would be none any more: the text is too short, or a "
            "word of foredeck's own. Say more of it."
        ) from error
    fresh.seal()
    if (id := _id_of(document, fresh, renaming.redaction)) != document.id:
        fresh.id = renaming.names[document.id] = id
    amend(document, fresh)
    fresh.seal()
    for name in ("content_hash", "metadata_view_hash", "text_hash"):
        old, new = before[name], getattr(fresh, name)
        if old and new and old != new:
            renaming.names[old] = new
    return fresh


def _id_of(before: Document, now: Document, redaction: Redaction) -> str:
    """The id of a document that has lost a text, where that follows from what it lost."""
    if now.source is not None:
        return now.identity_hash
    if now.type == "user" and now.text_hash != before.text_hash:
        return user_object_id(str(now.text_hash))
    if now.type == "nickname" and redaction.text(now.id) != now.id:
        return nickname_id(f"purged-{hash_text(now.id)[:8]}")
    return now.id


def _load(store: Store, type: str, id: str, token: Token) -> Document:
    document = store.get(id, kind_of(type), token)
    if document is None:
        raise Corrupt(f"{type} {id!r} has no version at {token!r}")
    return document


def check_alone(config: Config) -> None:
    """Raise `PurgeRefused` while an engine works on the store: it would write the text again."""
    engines = {engine.pid for engine in engines_at_work(config.home)}
    if others := sorted({*holders(store_kind(config.store).file(config)), *engines}):
        pids = ", ".join(str(pid) for pid in others if pid) or "of another container"
        raise PurgeRefused(f"the store is in use (process {pids}): close what uses it first")


def carry_out(place: PurgedPlace, purge: Purge) -> None:
    """Do what was planned. Raises `Conflict` where the store was written to since: then
    nothing has changed."""
    _write_pending(place.pending, purge)
    _finish(place, purge.looked)


def finish_pending(config: Config) -> list[PurgedPlace]:
    """Commit what an interrupted purge has left half done; the stores where there was any."""
    places: list[PurgedPlace] = [ConfiguredStore(config), *map(StoreFile, kept_stores(config))]
    found = [place for place in places if place.pending.exists()]
    for place in found:
        _finish(place, None)
    return found


def kept_stores(config: Config) -> list[Path]:
    """The other stores in the state folder: of before a restore or a migration, and damaged ones.
    Local copies of databases are not among them: they are worth nothing without theirs."""
    own = store_kind(config.store).file(config)
    found = sorted(config.home.glob("foredeck.db*"))
    return [path for path in found if path != own and _is_store_file(path.name)]


def _is_store_file(name: str) -> bool:
    return name.rpartition("-")[2] not in ("wal", "shm") and not name.endswith((".lock", ".jsonl"))


def _write_pending(path: Path, purge: Purge) -> None:
    with private_draft(path) as draft:

        def line(value: Mapping[str, Any]) -> None:
            draft.write(json.dumps(value).encode() + b"\n")

        line({"ids": sorted(purge.ids), "blobs": sorted(purge.stale)})
        for digest in sorted(purge.blobs):
            line(blob_line(digest, purge.blobs[digest]))
        for origin, documents in purge.versions.items():
            line({"token": origin.token, "time_ms": origin.time_ms})
            for document in documents:
                line({"document": document.model_dump()})


def _finish(place: PurgedPlace, looked: Looked | None) -> None:
    """Take out what is named, and commit what takes its place. May be done again and again."""
    with open_to_read(place.pending) as file:
        first = json.loads(file.readline())
        if looked is None:
            with closing(place.open()) as store:
                _, looked = store.needed(first["blobs"], first["ids"])
        try:
            place.erase(first["ids"], first["blobs"], looked)
        except Conflict:
            if place.is_one_file:  # nothing was taken out, and what is planned is out of date
                place.pending.unlink()
            raise
        with closing(place.open()) as store:
            _commit_again(store, map(json.loads, file))
    place.pending.unlink()


def _commit_again(store: Store, lines: Iterable[dict[str, Any]]) -> None:
    blobs: dict[str, bytes] = {}
    origin: Origin | None = None
    documents: list[Document] = []
    for line in lines:
        if "document" in line:
            body = line["document"]
            documents.append(kind_of(body["type"]).model_validate(body))
        elif "token" in line:
            _commit(store, origin, documents, blobs)
            origin, documents = Origin(Token(line["token"]), line["time_ms"]), []
        else:
            blobs[line["blob"]] = blob_of_line(line)
    _commit(store, origin, documents, blobs)


def _commit(
    store: Store, origin: Origin | None, documents: list[Document], blobs: dict[str, bytes]
) -> None:
    if origin is not None and documents:
        store.commit(Batch(documents, dict(blobs)), origin=origin)
        blobs.clear()

"""Putting a text out of everything that a store keeps, in all versions, as if it had been another.

A store rewrites nothing, so what holds the text is taken out and committed again under the same
transactions, without it. In between nothing of it would be left but a file in the state folder,
which is written first: an interrupted purge is finished by the next one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from foredeck.config import Config
from foredeck.errors import Conflict, Corrupt, ForedeckError
from foredeck.model.documents import Document
from foredeck.model.kinds import kind_of, rank_of
from foredeck.model.user_objects import user_object_id
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
from foredeck.store.references import in_message, references
from foredeck.store.registry import store_kind
from foredeck.store.session_cache import drop_cached

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


def plan_purge(
    store: LocalStore,
    redaction: Redaction,
    erased: Collection[str] = (),
    amend: Amend = as_it_is,
    advance: Advance = lambda: None,
) -> Purge:
    """What purging takes. `erased`: documents that go altogether. Reads the whole store twice.

    Raises `PurgeRefused`.
    """
    for word in OWN_WORDS:
        if redaction.text(word) != word:
            raise PurgeRefused(f"That would put out every {word!r} of every message: say more.")
    listed = _listed(store, advance)
    renaming = Renaming(redaction)
    _rename_blobs(store, listed, renaming, advance)
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
    store: Store,
    listed: Mapping[Origin, Sequence[tuple[str, str]]],
    renaming: Renaming,
    advance: Advance,
) -> None:
    leaves: set[str] = set()
    messages: set[str] = set()
    for origin, versions in listed.items():
        for _type, id in versions:
            head = store.head(id, origin.token)
            if head is not None:
                named = references(head.type, head.fields)
                messages |= named.messages
                leaves |= named.needed | named.possible
                if isinstance(text := head.fields.get("text_hash"), str):
                    leaves.add(text)
        advance()
    for _address, data in _fetched(store, messages, advance):
        leaves |= in_message(data)
    for digest, data in _fetched(store, leaves - messages, advance):
        renaming.leaf(digest, data)
    for address, data in _fetched(store, messages, advance):
        renaming.message(address, data)


def _fetched(store: Store, digests: Iterable[str], advance: Advance) -> Iterator[tuple[str, bytes]]:
    rest = iter(sorted(digests))
    while chunk := list(islice(rest, _CHUNK)):
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
    if document.type == "user" and document.content != fresh.content:
        fresh.seal()
        fresh.id = user_object_id(str(fresh.text_hash))
        renaming.names[document.id] = fresh.id
    amend(document, fresh)
    fresh.seal()
    for name in ("content_hash", "metadata_view_hash", "text_hash"):
        old, new = before[name], getattr(fresh, name)
        if old and new and old != new:
            renaming.names[old] = new
    return fresh


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
        raise PurgeRefused(f"the store is in use (process {pids}): end what uses it first")


def carry_out(config: Config, purge: Purge) -> None:
    """Do what was planned. Raises `Conflict` where somebody has written to the store since: then
    nothing has changed."""
    store_kind(config.store).check_settled(config)
    _write_pending(config.home / PENDING_PURGE, purge)
    _finish(config, purge.looked)


def finish_pending(config: Config) -> bool:
    """Finish a purge that was interrupted; whether there was one."""
    if not (config.home / PENDING_PURGE).exists():
        return False
    _finish(config, None)
    return True


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


def _finish(config: Config, looked: Looked | None) -> None:
    """Take out what is named, and commit what takes its place. May be done again and again."""
    path = config.home / PENDING_PURGE
    with path.open("rb") as file:
        first = json.loads(file.readline())
        kind = store_kind(config.store)
        with closing(kind.open(config, notify=silent, lazy=True)) as store:
            if looked is None:
                _, looked = store.needed(first["blobs"], first["ids"])
            sessions = [str(head.fields["session_id"]) for head in store.query("session")]
        try:
            kind.erase(config, first["ids"], first["blobs"], looked)
        except Conflict:
            if kind.is_one_file:  # nothing was taken out, and what is planned is out of date
                path.unlink()
            raise
        with closing(kind.open(config, notify=silent, lazy=True)) as store:
            _commit_again(store, map(json.loads, file))
    for session in sessions:
        drop_cached(config.home, session)
    path.unlink()


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

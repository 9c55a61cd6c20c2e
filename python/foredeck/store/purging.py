"""Removes a text from all versions in a store, as if it had been another.

What holds it is taken out and committed again without it.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import mmap
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from foredeck.config import Config
from foredeck.errors import Conflict, Corrupt, ForedeckError
from foredeck.model.documents import Document, user_object_id
from foredeck.model.identity import hash_text
from foredeck.model.kinds import kind_of
from foredeck.model.messages import is_digest, strings_in
from foredeck.model.records import nickname_id
from foredeck.regular_files import open_to_read, read_regular
from foredeck.store.at_work import engines_at_work
from foredeck.store.erasing import (
    DERIVED,
    Erasure,
    ErasureStep,
    blobs_of,
    erase_from,
    everything,
    records_by_time,
)
from foredeck.store.location import holders, is_draft, private_draft
from foredeck.store.place import SQLITE, StorePlace, store_place
from foredeck.store.portable.export import blob_line, blob_of_line
from foredeck.store.protocol import (
    Advance,
    Batch,
    Copyable,
    Origin,
    Record,
    ScanMark,
    Token,
    digests_of,
)
from foredeck.store.redaction import OWN_WORDS, Redaction, Renaming
from foredeck.store.references import RECORDS, references
from foredeck.store.store import Store

Amend = Callable[[Document, Document], None]
"""Receives a document before and after, before sealing."""


class PurgeRefused(ForedeckError):
    """A text cannot be purged; says why, and what to do."""

    exit_code = 2


@dataclass(slots=True)
class Purge:
    """A purge's changes.

    `versions` are committed again, oldest first, after `ids` and `stale` are removed; `sessions`
    are those whose prompts change.
    """

    ids: set[str] = field(default_factory=set)
    versions: dict[Origin, list[Document]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    stale: set[str] = field(default_factory=set)
    changed: dict[str, int] = field(default_factory=dict)
    sessions: set[str] = field(default_factory=set)
    scanned: ScanMark | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.ids and not self.stale


def plan_purge(
    place: StorePlace,
    store: Store,
    redaction: Redaction,
    erased: Collection[str] = (),
    amend: Amend = lambda _before, _after: None,
    advance: Advance = lambda: None,
) -> Purge:
    """Plans a purge of a place's opened store. Raises `PurgeRefused`."""
    for word in OWN_WORDS:
        if redaction.text(word) != word:
            raise PurgeRefused(
                f"That would remove {word!r} from every message: give more of the text."
            )
    records = records_by_time(store)
    renaming = Renaming(redaction)
    _rename_blobs(place, store, records, renaming, advance)
    purge = Purge(set(erased), blobs=renaming.blobs, stale=renaming.stale)
    changed = _changed(store, records, renaming, purge, amend, advance)
    for record in records:
        token = record.origin.token
        again = [
            changed.get((token, id)) or _load(store, type, id, token)
            for id, type in record.changes
            if id in purge.ids and id not in erased
        ]
        if again:
            purge.versions[record.origin] = again
    still_used, purge.scanned = store.needed(purge.stale, purge.ids, advance)
    if still_used:
        raise PurgeRefused(
            f"{len(still_used)} texts are still referred to by something else: not purged"
        )
    return purge


def _rename_blobs(
    place: StorePlace, store: Store, records: Iterable[Record], renaming: Renaming, advance: Advance
) -> None:
    """Renames all blobs, unnamed ones too; those that name others last."""
    messages: set[str] = set()
    for record in records:
        for id, type in record.changes:
            if type in RECORDS and (head := store.head(id, record.origin.token)) is not None:
                messages |= references(head.type, head.fields).messages
        advance()
    digests = set(digests_of(store))
    for digest, data in blobs_of(store, sorted(digests - messages), advance):
        renaming.leaf(digest, data)
    for digest, data in place.other_blobs(digests):
        renaming.leaf(digest, data)
    for address, data in blobs_of(store, sorted(messages), advance):
        renaming.message(address, data)


def _changed(
    store: Store,
    records: Iterable[Record],
    renaming: Renaming,
    purge: Purge,
    amend: Amend,
    advance: Advance,
) -> dict[tuple[Token, str], Document]:
    fresh_versions: dict[tuple[Token, str], Document] = {}
    for record in records:
        for id, type in record.changes:
            document = _load(store, type, id, record.origin.token)
            fresh = _redacted(document, renaming, amend)
            if fresh is None:
                continue
            fresh_versions[record.origin.token, id] = fresh
            purge.ids.add(id)
            purge.changed[type] = purge.changed.get(type, 0) + 1
            if type in ("turn", "call"):
                purge.sessions.add(str(document.model_dump().get("session")))
        advance()
    return fresh_versions


def _redacted(document: Document, renaming: Renaming, amend: Amend) -> Document | None:
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
    """Raises `PurgeRefused` while an engine could write the text again."""
    engines = {engine.pid for engine in engines_at_work(config.home)}
    if others := sorted({*holders(store_place(config).file), *engines}):
        pids = ", ".join(str(pid) for pid in others if pid) or "of another container"
        raise PurgeRefused(f"the store is in use (process {pids}): close what uses it first")


def carry_out(config: Config, place: StorePlace, purge: Purge) -> None:
    """Carries out a plan. Raises `Conflict`, with nothing changed, if the store was written
    since."""
    # Between erasing and committing again this file is all that is left of these documents: it is
    # written first, and the next purge finishes one that was interrupted.
    _write_pending(place.pending, purge)
    _finish(config.home, place, purge.scanned)


def purged_stores(config: Config) -> list[StorePlace]:
    """The configured store and older ones in the state folder."""
    current = store_place(config)
    beside = ("-wal", "-shm", ".lock", ".jsonl")
    files_found = config.home.glob("foredeck.db*")
    files = sorted(path for path in files_found if not path.name.endswith(beside))
    return [current, *(StorePlace.replaced(config, path) for path in files if path != current.file)]


def finish_pending(config: Config) -> list[StorePlace]:
    """Finishes interrupted purges; returns their stores."""
    places = [place for place in purged_stores(config) if place.pending.exists()]
    for place in places:
        _finish(config.home, place, None)
    return places


def _write_pending(path: Path, purge: Purge) -> None:
    with private_draft(path) as draft:

        def line(value: Mapping[str, Any]) -> None:
            draft.write(json.dumps(value).encode() + b"\n")

        names = {"ids": purge.ids, "blobs": purge.stale, "sessions": purge.sessions}
        line({name: sorted(values) for name, values in names.items()})
        for digest in sorted(purge.blobs):
            line(blob_line(digest, purge.blobs[digest]))
        for origin, documents in purge.versions.items():
            line({"token": origin.token, "time_ms": origin.time_ms})
            for document in documents:
                line({"document": document.model_dump()})


def _finish(home: Path, place: StorePlace, scanned: ScanMark | None) -> None:
    with open_to_read(place.pending) as file:
        first = json.loads(file.readline())
        ids, blobs = first["ids"], first["blobs"]
        try:
            with closing(place.open(lazy=True)) as store:
                mark = store.needed(blobs, ids)[1] if scanned is None else scanned
                # Not by `erase`, which refuses while commits wait for the database: what an
                # interrupted purge has committed again may still be on its way there.
                step = ErasureStep(first["sessions"], ids, blobs, mark)
                erase_from(place, home, store, Erasure([], [step]))
        except Conflict:
            # Nothing was taken out, and what is planned is out of date. Of an interrupted purge the
            # file stays: what it names may be out of the store by now, and nowhere else.
            if place.is_one_file and scanned is not None:
                place.pending.unlink()
            raise
        # Opened anew: a store remembers what its database has.
        with closing(place.open(lazy=True)) as store:
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


def texts_matched(
    store: Copyable, redaction: Redaction, advance: Advance = lambda: None
) -> Iterator[str]:
    """Texts in a store that the patterns match, for literal search."""
    for _, value in everything(store, advance):
        if isinstance(value, bytes):
            yield from redaction.found_in(value)
        else:
            for text in strings_in(value, names=True):
                for pattern in redaction.patterns:
                    yield from (match[0] for match in pattern.finditer(text))


def holders_in_store(
    store: Copyable, redaction: Redaction, advance: Advance = lambda: None
) -> Iterator[str]:
    """Names of what in a store still holds the text."""
    for name, value in everything(store, advance):
        if isinstance(value, bytes):
            if redaction.data(value) != value:
                yield name
        elif any(
            redaction.text(text) != text
            for text in strings_in(value, names=True)
            if not is_digest(text)
        ):
            yield name


# The files beside the store

_PROGRAMS = ("engines", "xtdb/jars", "xtdb/runtime-*", "xtdb/tmp")
"""Programs without user text."""
_KEYS = ("user.key", "token")
_MOST = 2**28
"""Bytes of a file read or unpacked whole."""
_UNPACK: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": lambda data: gzip.decompress(data),
    b"BZh": bz2.decompress,
    b"\xfd7zXZ": lzma.decompress,
    b"\x78": lambda data: zlib.decompressobj().decompress(data, _MOST),
}
"""Unpackers by a file's first bytes."""


def state_files(home: Path) -> Iterator[Path]:
    """A state folder's regular files, without programs."""
    skipped = {path for pattern in _PROGRAMS for path in home.glob(pattern)}
    for path in sorted(home.rglob("*")):
        if skipped.isdisjoint((path, *path.parents)) and path.is_file() and not path.is_symlink():
            yield path


def tidy(home: Path, redaction: Redaction) -> None:
    """Removes drafts and derived data, and rewrites other plain files. No engine may run."""
    for path in list(state_files(home)):
        if path.parent.name in DERIVED or is_draft(path):
            path.unlink(missing_ok=True)
        elif not _is_kept(home, path) and (data := _whole(path)) is not None:
            cleaned = redaction.data(data)
            if cleaned != data:
                with private_draft(path) as draft:
                    draft.write(cleaned)


def _is_kept(home: Path, path: Path) -> bool:
    """Whether a file stays: databases, keys, and pending purges."""
    is_data = (home / "xtdb" / "data") in path.parents or _is_database(path)
    return is_data or path.name in _KEYS or path.name.endswith(("-wal", "-shm", ".jsonl"))


def found_in_files(home: Path, redaction: Redaction) -> Iterator[str]:
    """Matches of the patterns in plain files."""
    for path in state_files(home):
        if not _is_database(path) and (data := _whole(path)) is not None:
            yield from redaction.found_in(data)


def holders_in_files(
    home: Path, redaction: Redaction, advance: Advance = lambda: None
) -> Iterator[Path]:
    """Files that still hold the text: literally, in UTF-16, JSON, database rows, or packed."""
    for path in state_files(home):
        with suppress(FileNotFoundError):
            if _holds(path, redaction):
                yield path
        advance()


def _holds(path: Path, redaction: Redaction) -> bool:
    if path.stat().st_size == 0:
        return False
    with open_to_read(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw:
        if any(raw.find(needle) >= 0 for needle in redaction.needles):
            return True
    if _is_database(path):
        return any(redaction.data(value) != value for value in _rows(path))
    data = _whole(path)
    return data is not None and any(
        redaction.data(form) != form for form in (data, _unpacked(data))
    )


def _rows(path: Path) -> Iterator[bytes]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
        db.text_factory = bytes
        names = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        for (name,) in names:
            quoted = name.decode().replace('"', '""')
            with suppress(sqlite3.DatabaseError):  # a virtual table, whose own tables are read
                for row in db.execute(f'SELECT * FROM "{quoted}"'):
                    for value in row:
                        if isinstance(value, bytes):
                            yield value
                            yield _unpacked(value)


def _is_database(path: Path) -> bool:
    try:
        with open_to_read(path) as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:
        return False


def _whole(path: Path) -> bytes | None:
    try:
        return read_regular(path, _MOST)
    except OSError:
        return None


def _unpacked(data: bytes) -> bytes:
    unpack = next((how for magic, how in _UNPACK.items() if data.startswith(magic)), None)
    with suppress(OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
        return b"" if unpack is None else unpack(data)
    return b""

"""Purging the files beside the store, and checking afterwards that nothing holds the text.

What was computed from the store is removed, since it is made again, and so are drafts of killed
processes; logs and the like are rewritten without the text.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import mmap
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from foredeck.model.messages import is_digest
from foredeck.regular_files import open_to_read, read_regular
from foredeck.store.location import is_draft, private_draft
from foredeck.store.protocol import Advance
from foredeck.store.redaction import Redaction
from foredeck.store.whole import WholeStore, digests_of, records_of

_PROGRAMS = ("engines", "xtdb/jars", "xtdb/runtime-*", "xtdb/tmp")
"""Programs, which hold no user's text."""
_MOST = 2**28
"""Bytes: of a file that is unpacked or read as a whole; what it unpacks to."""
_SQLITE = b"SQLite format 3\0"
_CHUNK = 200
_UNPACK: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": lambda data: gzip.decompress(data),
    b"BZh": bz2.decompress,
    b"\xfd7zXZ": lzma.decompress,
    b"\x78": lambda data: zlib.decompressobj().decompress(data, _MOST),
}
"""How a file that begins so is unpacked."""


def state_files(home: Path) -> Iterator[Path]:
    """The regular files of a state folder, programs left out."""
    skipped = {path for pattern in _PROGRAMS for path in home.glob(pattern)}
    for path in sorted(home.rglob("*")):
        if skipped.isdisjoint((path, *path.parents)) and path.is_file() and not path.is_symlink():
            yield path


def tidy(
    home: Path, redaction: Redaction, disposable: Collection[str], kept: Callable[[Path], bool]
) -> None:
    """Remove drafts and everything in the `disposable` folders; rewrite other plain files without
    the text. `kept`: files to leave alone. No engine may be running."""
    for path in list(state_files(home)):
        if path.parent.name in disposable or is_draft(path):
            path.unlink(missing_ok=True)
        elif not kept(path) and not _is_database(path) and (data := _whole(path)) is not None:
            cleaned = redaction.data(data)
            if cleaned != data:
                with private_draft(path) as draft:
                    draft.write(cleaned)


def found_in_files(home: Path, redaction: Redaction) -> Iterator[str]:
    """What the patterns match in the plain files of a state folder."""
    for path in state_files(home):
        if not _is_database(path) and (data := _whole(path)) is not None:
            yield from redaction.found_in(data)


def walk(store: WholeStore, advance: Advance = lambda: None) -> Iterator[tuple[str, Any]]:
    """Everything that a store holds, with a name: the fields of each version, the bytes of each
    blob, whether anything names it or not."""
    for record in records_of(store):
        for document in store.documents(record):
            yield f"{document.type} {document.id}", document.model_dump()
        advance()
    digests: list[str] = []
    for digest in digests_of(store):
        digests.append(digest)
        if len(digests) == _CHUNK:
            yield from _blobs(store, digests)
            digests.clear()
            advance()
    yield from _blobs(store, digests)


def _blobs(store: WholeStore, digests: list[str]) -> Iterator[tuple[str, bytes]]:
    for digest, data in store.blobs(digests).items():
        yield f"text {digest[:12]}", data


def texts_matched(
    store: WholeStore, redaction: Redaction, advance: Advance = lambda: None
) -> Iterator[str]:
    """What the patterns match in a store, as texts that are then searched for literally."""
    for _, value in walk(store, advance):
        if isinstance(value, bytes):
            yield from redaction.found_in(value)
        else:
            for text in _strings(value):
                for pattern in redaction.patterns:
                    yield from (match[0] for match in pattern.finditer(text))


def holders_in_store(
    store: WholeStore, redaction: Redaction, advance: Advance = lambda: None
) -> Iterator[str]:
    """The names of what in a store still holds the text."""
    for name, value in walk(store, advance):
        if isinstance(value, bytes):
            if redaction.data(value) != value:
                yield name
        elif any(redaction.text(text) != text for text in _strings(value) if not is_digest(text)):
            yield name


def holders_in_files(
    home: Path, redaction: Redaction, advance: Advance = lambda: None
) -> Iterator[Path]:
    """The files of a state folder that still hold the text: literally, in UTF-16, in JSON, in
    any row of a database, or packed."""
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
    """Every text and every run of bytes in an SQLite file, packed ones unpacked."""
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
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def _whole(path: Path) -> bytes | None:
    """A file's bytes; None where it is too large to be read as a whole, or cannot be."""
    try:
        return read_regular(path, _MOST)
    except OSError:
        return None


def _unpacked(data: bytes) -> bytes:
    """What packed bytes unpack to; nothing for others."""
    unpack = next((how for magic, how in _UNPACK.items() if data.startswith(magic)), None)
    with suppress(OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
        return b"" if unpack is None else unpack(data)
    return b""


def _strings(value: Any) -> Iterator[str]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())

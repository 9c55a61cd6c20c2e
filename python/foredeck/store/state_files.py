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
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from foredeck.regular_files import open_to_read, read_regular
from foredeck.store.erasing import DERIVED
from foredeck.store.location import is_draft, private_draft
from foredeck.store.protocol import Advance
from foredeck.store.redaction import Redaction

_PROGRAMS = ("engines", "xtdb/jars", "xtdb/runtime-*", "xtdb/tmp")
"""Programs, which hold no user's text."""
_KEYS = ("user.key", "token")
_MOST = 2**28
"""Bytes: of a file that is unpacked or read as a whole; what it unpacks to."""
_SQLITE = b"SQLite format 3\0"
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


def tidy(home: Path, redaction: Redaction) -> None:
    """Remove drafts and what was made from the store; rewrite other plain files without the text.
    No engine may be running."""
    made = {derived.folder for derived in DERIVED}
    for path in list(state_files(home)):
        if path.parent.name in made or is_draft(path):
            path.unlink(missing_ok=True)
        elif not _is_kept(home, path) and (data := _whole(path)) is not None:
            cleaned = redaction.data(data)
            if cleaned != data:
                with private_draft(path) as draft:
                    draft.write(cleaned)


def _is_kept(home: Path, path: Path) -> bool:
    """Whether a file is left as it is: databases, whose own code erases, with their logs; keys; and
    what an interrupted purge still has to write."""
    is_data = (home / "xtdb" / "data") in path.parents or _is_database(path)
    return is_data or path.name in _KEYS or path.name.endswith(("-wal", "-shm", ".jsonl"))


def found_in_files(home: Path, redaction: Redaction) -> Iterator[str]:
    """What the patterns match in the plain files of a state folder."""
    for path in state_files(home):
        if not _is_database(path) and (data := _whole(path)) is not None:
            yield from redaction.found_in(data)


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

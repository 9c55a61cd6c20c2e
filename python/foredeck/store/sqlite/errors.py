"""What SQLite says, as the errors of the store: which file, what is wrong, what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foredeck.errors import StoreDamaged, StoreUnavailable
from foredeck.store.location import holders

_PRIMARY = 0xFF
"""The low byte of an extended SQLite result code names the kind of error."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@contextmanager
def translated(path: Path, busy_timeout_ms: int) -> Iterator[None]:
    """Raise every `sqlite3.Error` of the block as a `StoreUnavailable` that names the file."""
    try:
        yield
    except sqlite3.Error as error:
        kind = StoreDamaged if _code(error) in _DAMAGED else StoreUnavailable
        raise kind(f"store {path}: {_reason(error, path, busy_timeout_ms)}") from error


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection has what this one wants."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & _PRIMARY


def _reason(error: sqlite3.Error, path: Path, busy_timeout_ms: int) -> str:
    code = _code(error)
    if is_busy(error):
        return f"busy for {busy_timeout_ms} ms: {_holders(path)}"
    if code == sqlite3.SQLITE_FULL:
        return "the disk is full (or the file's size limit is reached): free some space"
    if code == sqlite3.SQLITE_READONLY:
        return "it cannot be written: check the permissions of the file and of its folder"
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return f"it cannot be opened ({error}): check that the folder exists and is writable"
    if code in _DAMAGED:
        return (
            f"the file is damaged ({error}): `foredeck restore FILE --force` puts a backup in its "
            "place; or move it away to start afresh"
        )
    if code == sqlite3.SQLITE_IOERR:
        return f"reading or writing failed ({error}): check the disk and its free space"
    return str(error)


def _holders(path: Path) -> str:
    pids = holders(path)
    if not pids:
        return "another process holds it (another Pi with foredeck, a backup, an SQLite shell)"
    return "another process holds it; open in " + ", ".join(f"process {pid}" for pid in pids)

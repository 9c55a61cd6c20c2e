"""The SQLite file of a layer: where it is, how it is opened, emptied and thrown away."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from foredeck.errors import StoreUnavailable
from foredeck.store.location import make_private_file

FOLDER = "layers"
PATIENCE_S = 60.0
"""How long a writer waits for another one, which writes a batch at a time."""

_FULL_TEXT = (
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%USING fts5%'"
)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class LayerBusy(StoreUnavailable):
    """Another process has been writing to the file for longer than could be waited."""


def layer_file(home: Path, layer: str, store_id: str) -> Path:
    """The file of a layer: one for each store that a state folder works with."""
    return home / FOLDER / f"{layer}-{store_id}.sqlite"


def open_layer_file(path: Path, patience_s: float = PATIENCE_S) -> sqlite3.Connection:
    """A connection to the file, which is made (0600) where there is none.

    `patience_s`: how long a writer waits for another. With a log beside the file readers never wait
    for the writer. One that is damaged is thrown away: everything in it can be made again.

    Raises `StoreUnavailable`.
    """
    try:
        make_private_file(path)
        return _connect(path, patience_s)
    except OSError as error:
        raise StoreUnavailable(f"index {path}: {error.strerror or error}") from error
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in _DAMAGED:
            raise StoreUnavailable(f"index {path}: {error}") from error
    discard(path)
    make_private_file(path)
    return _connect(path, patience_s)


def _connect(path: Path, patience_s: float) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=patience_s, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = normal")
        db.execute("PRAGMA temp_store = memory")
        db.execute("SELECT count(*) FROM sqlite_schema")
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Raise every `sqlite3.Error` of the block as a `StoreUnavailable` that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)  # not of all errors
        if code & 0xFF == sqlite3.SQLITE_BUSY:
            raise LayerBusy(f"index {path}: another process is writing to it") from error
        raise StoreUnavailable(
            f"index {path}: {error}. `foredeck doctor --rebuild` makes it again from the store."
        ) from error


def discard(path: Path) -> None:
    """Remove the file and its log."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def compact(path: Path) -> tuple[int, int]:
    """Merge the full-text indexes of the file, each into one piece, and give its free space back
    to the disk; its size in bytes before and after. Raises `StoreUnavailable`, also where another
    process keeps writing to it."""
    with closing(open_layer_file(path)) as db, reported(path):
        before = _size(db)
        for (name,) in db.execute(_FULL_TEXT).fetchall():
            db.execute(f"""INSERT INTO "{name}" ("{name}") VALUES ('optimize')""")
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return before, _size(db)


def _size(db: sqlite3.Connection) -> int:
    return int(
        db.execute(
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        ).fetchone()[0]
    )


def drop_tables(db: sqlite3.Connection) -> None:
    """Drop everything in the file, in the open transaction."""
    virtual = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'"
    plain = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    for statement in (virtual, plain):  # a virtual table takes its own tables with it
        for (name,) in db.execute(statement).fetchall():
            db.execute(f'DROP TABLE "{name}"')

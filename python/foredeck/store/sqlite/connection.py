"""A connection to the store's file: private, checked, configured."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from foredeck.errors import StoreDamaged, StoreEmpty, StoreUnavailable
from foredeck.store.location import holders, make_private_file
from foredeck.store.versions import SCHEMA, check_schema, new_store_id

_PRIMARY = 0xFF
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@contextmanager
def translated(path: Path, busy_timeout_ms: int) -> Iterator[None]:
    """Turns `sqlite3.Error` into `StoreUnavailable` with the file's name."""
    try:
        yield
    except sqlite3.Error as error:
        kind = StoreDamaged if is_damaged(error) else StoreUnavailable
        raise kind(f"store {path}: {_reason(error, path, busy_timeout_ms)}") from error


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection has the lock."""
    return primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_damaged(error: sqlite3.Error) -> bool:
    """Whether the file is damaged or no database."""
    return primary_code(error) in _DAMAGED


def primary_code(error: sqlite3.Error) -> int:
    """The kind of error; 0 if unknown."""
    return int(getattr(error, "sqlite_errorcode", 0)) & _PRIMARY


def _reason(error: sqlite3.Error, path: Path, busy_timeout_ms: int) -> str:
    code = primary_code(error)
    if is_busy(error):
        return f"busy for {busy_timeout_ms} ms: {_holders(path)}"
    if code == sqlite3.SQLITE_FULL:
        return "the disk is full (or the file's size limit is reached): free some space"
    if code == sqlite3.SQLITE_READONLY:
        return "it cannot be written: check the permissions of the file and of its folder"
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return f"it cannot be opened ({error}): check that the folder exists and is writable"
    if is_damaged(error):
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


Synchronous = Literal["normal", "full"]
"""What a commit waits for: the operating system, or the disk."""

_RETRY_S = 0.005
_BEING_MADE_S = 10.0
"""A younger empty file is being created by another process."""
# 16 MB of log before a commit copies it into the file, which takes that commit 5 to 20 ms: one in a
# hundred, instead of one in twenty with SQLite's default. Reading a log of that size after a crash
# takes as long.
_LOG_PAGES = 4000
_LOG_BYTES_KEPT = 16 * 1024 * 1024


def connect(path: Path, synchronous: Synchronous, busy_timeout_ms: int) -> sqlite3.Connection:
    """Connects to the store at `path`, creating it (0600).

    Raises `StoreUnavailable` with file and advice.
    """
    if synchronous not in ("normal", "full"):
        raise ValueError(f"synchronous is 'normal' or 'full', not {synchronous!r}")
    was_there = _is_older(path, _BEING_MADE_S)
    try:
        make_private_file(path)
    except OSError as error:
        raise StoreUnavailable(
            f"store {path}: it cannot be opened ({error.strerror}): check the folder's permissions"
        ) from error
    with translated(path, busy_timeout_ms):
        # No implicit transactions: each write begins its own, and takes the lock at its beginning.
        db = sqlite3.connect(path, timeout=busy_timeout_ms / 1000, isolation_level=None)
        try:
            # Before anything is set: another program's database is left as it is.
            if check_ours(db) == 0 and was_there:
                raise StoreEmpty(
                    "the file is empty, as after a full disk: `foredeck restore FILE --force` puts "
                    "a backup in its place; or move it away to start afresh"
                )
            _configure(db, synchronous, busy_timeout_ms)
            make_tables(db)
        except StoreUnavailable as error:
            db.close()
            raise type(error)(f"store {path}: {error}") from error
        except BaseException:
            db.close()
            raise
    return db


def _is_older(path: Path, seconds: float) -> bool:
    try:
        return time.time() - path.stat().st_mtime > seconds
    except OSError:
        return False


def _configure(db: sqlite3.Connection, synchronous: Synchronous, busy_timeout_ms: int) -> None:
    _use_wal(db, busy_timeout_ms)
    # With `normal` a killed process loses nothing, and a power loss may take the last commits,
    # whole ones; `full` waits for the disk at each commit.
    db.execute(f"PRAGMA synchronous = {synchronous}")
    db.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES_KEPT}")
    db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
    db.execute("PRAGMA temp_store = memory")


def _use_wal(db: sqlite3.Connection, busy_timeout_ms: int) -> None:
    # With a log beside the file readers never wait for a writer, nor a writer for them.
    deadline = time.monotonic() + busy_timeout_ms / 1000
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # Where two processes make a file at once, SQLite refuses this without waiting.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_S)


@contextmanager
def immediate(db: sqlite3.Connection) -> Iterator[None]:
    """A transaction with an immediate write lock. Raises sqlite3.OperationalError after the busy
    timeout."""
    # A commit reads before it writes. A transaction that asks for the lock at its first write only
    # would fail at once when another has written meanwhile, instead of waiting.
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    # Also when the user interrupts: the lock would stay taken.
    except BaseException:
        # SQLite has rolled back by itself after some errors, a full disk among them.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def vacuum(db: sqlite3.Connection) -> tuple[int, int]:
    before = file_size(db)
    db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return before, file_size(db)


def file_size(db: sqlite3.Connection) -> int:
    """The database's size in bytes."""
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = db.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(page_bytes)


# The tables

APPLICATION_ID = 0x666F7265
"""The bytes "fore", which identify the program."""

# A version's rowid is its place (`POSITION_BITS`): versions lie in the order in which transactions
# came in, and no column is needed to say which one a version belongs to. A document's number is the
# rowid of the version that came in first. `tx.time_ms, place, token` is the order in which versions
# follow each other (`order_of`).

_TABLES = """
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE tx (
    seq INTEGER PRIMARY KEY,
    token TEXT NOT NULL UNIQUE,
    time_ms INTEGER NOT NULL,
    place INTEGER NOT NULL
);
CREATE INDEX tx_by_time ON tx (time_ms);

CREATE TABLE document (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    head INTEGER NOT NULL
);

CREATE TABLE version (
    number INTEGER PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES document (number),
    content_hash BLOB NOT NULL,
    view_hash BLOB NOT NULL,
    text_hash BLOB,
    body BLOB NOT NULL
);
CREATE INDEX version_by_document ON version (document);

CREATE TABLE lookup (
    key BLOB NOT NULL,
    document INTEGER NOT NULL REFERENCES document (number),
    PRIMARY KEY (key, document)
) WITHOUT ROWID;

CREATE TABLE blob (
    hash BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    encoding INTEGER NOT NULL,
    data BLOB NOT NULL
);
"""


def make_tables(db: sqlite3.Connection) -> None:
    """Creates missing tables; safe for concurrent processes."""
    if check_ours(db):
        return
    # Lock first, then look again: of several processes one makes them, and the others find them.
    with immediate(db):
        if _inspect(db):
            return
        # One by one: `executescript` would end the transaction.
        for statement in filter(str.strip, _TABLES.split(";")):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {SCHEMA}")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("INSERT INTO meta VALUES ('store_id', ?)", (new_store_id(),))


def check_ours(db: sqlite3.Connection) -> int:
    """The file's schema number, 0 if empty. Raises `StoreUnavailable` for another program's file or
    another form."""
    # One transaction: another process may be making the file at this very moment.
    db.execute("BEGIN")
    try:
        return _inspect(db)
    finally:
        db.execute("ROLLBACK")


def _inspect(db: sqlite3.Connection) -> int:
    (tables,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        raise StoreUnavailable("it is an SQLite database of another program")
    if version:
        check_schema(version)
    return int(version)

"""The tables of the SQLite store, and the way from every older schema to the newest.

`PRAGMA user_version` counts the migrations that a file has had; they only go forward. A file
of another program is recognised by `PRAGMA application_id`.

A version's rowid is `transaction << POSITION_BITS | position`: versions lie in the order in which
transactions came in, and no column is needed to say which one a version belongs to. A document's
number is the rowid of the version that came in first. `tx.time_ms, place, token` is the order in
which versions follow each other (`protocol.order_of`).
"""

from __future__ import annotations

import secrets
import sqlite3

from foredeck.errors import StoreUnavailable

APPLICATION_ID = 0x666F7265
"""The bytes "fore"."""

POSITION_BITS = 20
MAX_DOCUMENTS = 1 << POSITION_BITS
"""How many versions one transaction can hold."""

_FIRST = """
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

MIGRATIONS = (_FIRST,)
"""Each takes a file from schema n to n + 1. Never edit one that has been released."""


def new_store_id() -> str:
    """Eight hexadecimal digits, the first part of the tokens that a store makes."""
    return secrets.token_hex(4)


def migrate(db: sqlite3.Connection) -> None:
    """Bring the file to the newest schema; several processes may do this at once."""
    if check_ours(db) == len(MIGRATIONS):
        return
    # Lock first, then look again: of several processes one migrates, and the others find it done.
    db.execute("BEGIN IMMEDIATE")
    try:
        for migration in MIGRATIONS[_inspect(db) :]:
            _run(db, migration)
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("INSERT OR IGNORE INTO meta VALUES ('store_id', ?)", (new_store_id(),))
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def check_ours(db: sqlite3.Connection) -> int:
    """The number of the file's schema, 0 for an empty file. Changes nothing.

    Raises `StoreUnavailable` for a file of another program or of a newer foredeck.
    """
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
    if version > len(MIGRATIONS):
        raise StoreUnavailable(
            f"a newer foredeck wrote it (schema {version}, this one knows {len(MIGRATIONS)}): "
            "upgrade foredeck"
        )
    return int(version)


def _run(db: sqlite3.Connection, script: str) -> None:
    """Run statements one by one: `executescript` would end the transaction."""
    for statement in script.split(";"):
        if statement.strip():
            db.execute(statement)

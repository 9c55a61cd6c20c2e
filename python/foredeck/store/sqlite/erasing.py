"""Taking documents and blobs out of the file for good, and giving its free space back."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from foredeck.store.sqlite import codec
from foredeck.store.sqlite.reading import HISTORY, ORDER, head_of_row, raw_digests


@contextmanager
def overwriting(db: sqlite3.Connection) -> Iterator[None]:
    """What is deleted in the block is overwritten with zeros, in the file and in its log."""
    db.execute("PRAGMA secure_delete = ON")
    try:
        yield
    finally:
        # It costs each deletion a write, and nothing but index entries is deleted otherwise.
        db.execute("PRAGMA secure_delete = OFF")
    # The log still has the old pages: it is copied into the file and cut off.
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def delete(db: sqlite3.Connection, ids: Collection[str], blobs: Collection[str]) -> None:
    """Delete documents with all their versions, and blobs, in the open transaction."""
    for id in ids:
        _delete_document(db, codec.id_column(id))
    db.executemany("DELETE FROM blob WHERE hash = ?", [(d,) for d in raw_digests(blobs)])


def _delete_document(db: sqlite3.Connection, id: str | bytes) -> None:
    newest = db.execute(f"{HISTORY} WHERE d.id = ? ORDER BY {ORDER} DESC LIMIT 1", (id,)).fetchone()
    if newest is None:
        return
    (number,) = db.execute("SELECT number FROM document WHERE id = ?", (id,)).fetchone()
    # Only the newest version has index entries.
    keys = codec.lookup_keys(head_of_row(newest).fields)
    db.executemany(
        "DELETE FROM lookup WHERE key = ? AND document = ?", [(key, number) for key in keys]
    )
    db.execute("DELETE FROM version WHERE document = ?", (number,))
    db.execute("DELETE FROM document WHERE number = ?", (number,))


def vacuum(db: sqlite3.Connection) -> tuple[int, int]:
    """Give the file's free space back to the disk; its size in bytes before and after."""
    before = _size(db)
    db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return before, _size(db)


def _size(db: sqlite3.Connection) -> int:
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = db.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(page_bytes)

"""One way to write to a SQLite database: all of it or nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def immediate(db: sqlite3.Connection) -> Iterator[None]:
    """A transaction that takes the lock for writing at once; rolled back when the block raises.

    Raises sqlite3.OperationalError where another holds the lock beyond the busy timeout.
    """
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

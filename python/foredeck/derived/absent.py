"""Versions whose texts could not be had when a layer took them in: they are tried again.

They may be in another machine's database, which was away, or erased: which of these is not known.
"""

from __future__ import annotations

import sqlite3

from foredeck.store.protocol import Change, Head, Token

TABLE = "CREATE TABLE absent (document BLOB NOT NULL, token TEXT NOT NULL, type TEXT NOT NULL)"
"""A layer that keeps them has this among its tables."""

_TRIED_AGAIN = 1000
"""How many are tried again with each batch."""


def note_absent(db: sqlite3.Connection, head: Head) -> None:
    """Keep a version for later."""
    id = head.id.encode("utf-8", "surrogatepass")
    db.execute("INSERT INTO absent VALUES (?, ?, ?)", (id, head.token, head.type))


def take_absent(db: sqlite3.Connection) -> list[Change]:
    """The versions that have waited longest, which no longer do."""
    rows = db.execute(
        "DELETE FROM absent WHERE rowid IN (SELECT rowid FROM absent ORDER BY rowid LIMIT ?)"
        " RETURNING document, token, type",
        (_TRIED_AGAIN,),
    ).fetchall()
    return [
        Change(Token(token), 0, id.decode("utf-8", "surrogatepass"), type)
        for id, token, type in rows
    ]

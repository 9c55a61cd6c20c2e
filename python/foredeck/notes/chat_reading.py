"""The links in chat messages, read into the layer after everything else that is new.

Messages are the larger part of a store and hold few links, so the graph of notes does not wait for
them. The layer keeps which turns are still to be read. The newest are read first: where the time
is up, those are there that are asked for most.
"""

from __future__ import annotations

import sqlite3

from foredeck.derived.follower import Follower
from foredeck.derived.layer import reported
from foredeck.notes.chat import CHUNK, TURN, links_of_turns
from foredeck.notes.rows import loaded, write_turns
from foredeck.store.protocol import Advance, Store
from foredeck.store.sqlite.connection import immediate

_NEWEST = "SELECT number, id FROM unread_turn ORDER BY number DESC LIMIT ?"


def read_chats(follower: Follower, store: Store, advance: Advance = lambda: None) -> int:
    """Read the turns that are not read yet, and return how many they were.

    `advance` is called after each `CHUNK`: what it raises ends the reading, and the next one goes
    on from there. Raises `StoreUnavailable` where the layer's file cannot be used.
    """
    read = 0
    with reported(follower.path):
        while follower.db.execute(_NEWEST, (1,)).fetchone() is not None:
            with immediate(follower.db):
                read += _read_some(follower.db, store)
            advance()
    return read


def _read_some(db: sqlite3.Connection, store: Store) -> int:
    """One chunk. Which turns it is of is asked under the lock: others read, too."""
    rows = db.execute(_NEWEST, (CHUNK,)).fetchall()
    heads = store.heads(loaded(id) for _, id in rows)
    turns = [head for head in heads.values() if head.type == TURN]
    write_turns(db, list(links_of_turns(store, turns)))
    db.executemany("DELETE FROM unread_turn WHERE number = ?", ((number,) for number, _ in rows))
    return len(rows)

"""Emptying the layers of a store while something is erased from it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from foredeck.derived.file import drop_tables, layer_file, open_layer_file, reported
from foredeck.derived.registry import LAYERS
from foredeck.store.protocol import LocalStore
from foredeck.store.sqlite.transaction import immediate


@contextmanager
def layers_emptied(home: Path, store: LocalStore) -> Iterator[None]:
    """Empty every layer of the store, overwriting what was in it, and keep them so in the block.

    No text of what is erased in the block is left in a layer, however the block or the process
    ends: they are empty before it begins, and nobody can write to them until it is over. They are
    made again when they are next asked for.
    """
    with ExitStack() as stack:
        for name in LAYERS:
            path = layer_file(home, name, store.lineage().id)
            if path.exists():
                stack.enter_context(_emptied(path))
        yield


@contextmanager
def _emptied(path: Path) -> Iterator[None]:
    with closing(open_layer_file(path)) as db, reported(path):
        _empty(db)
        db.execute("BEGIN IMMEDIATE")
        try:
            drop_tables(db)  # what another process wrote between the two transactions
            yield
        finally:
            db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _empty(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA secure_delete = ON")
    with immediate(db):
        drop_tables(db)
    # The log still has the old pages: it is copied into the file and cut off.
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("VACUUM")

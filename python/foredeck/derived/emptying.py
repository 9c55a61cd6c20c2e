"""The layers of a store while something is erased from it: emptied, or without just that."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from foredeck.derived.file import drop_tables, layer_file, open_layer_file, reported
from foredeck.derived.follower import Follower
from foredeck.derived.registry import LAYERS, load_layer
from foredeck.store.erasing import Erasure
from foredeck.store.protocol import LocalStore
from foredeck.store.sqlite.connection import immediate


@contextmanager
def erasing(home: Path, store: LocalStore, erasure: Erasure) -> Iterator[None]:
    """Leave nothing in any layer of what the erasure takes away, not in free space either.

    Where whole documents go, and tombstones tell of it, a layer that can take out what was made of
    them keeps the rest. All others are emptied, and are made again when they are next asked for.
    However the block or the process ends, no layer holds what is erased in it: the text is out of
    them before the block begins, and they cannot be written to until it is over.
    """
    with ExitStack() as stack:
        for name in LAYERS:
            path = layer_file(home, name, store.lineage().id)
            if path.exists() and erasure.tombstones:
                follower = stack.enter_context(Follower(store, load_layer(name), home))
                stack.enter_context(_without(follower, erasure))
            elif path.exists():
                stack.enter_context(_emptied(path))
        yield


@contextmanager
def _without(follower: Follower, erasure: Erasure) -> Iterator[None]:
    with reported(follower.path):
        if not follower.take_out(erasure.documents):
            with _emptied(follower.path):
                yield
            return
        db = follower.db
        _overwrite(db)
        db.execute("BEGIN IMMEDIATE")
        try:
            if not follower.is_unsettled:
                drop_tables(db)  # another process has made it again between the two transactions
            yield
            if follower.is_unsettled:
                follower.settle(erasure.tombstones)
        finally:
            db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def _emptied(path: Path) -> Iterator[None]:
    with closing(open_layer_file(path)) as db, reported(path):
        db.execute("PRAGMA secure_delete = ON")
        with immediate(db):
            drop_tables(db)
        _overwrite(db)
        db.execute("BEGIN IMMEDIATE")
        try:
            drop_tables(db)  # what another process wrote between the two transactions
            yield
        finally:
            db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _overwrite(db: sqlite3.Connection) -> None:
    """Leave nothing of what was deleted in the file or its log."""
    # The log still has the old pages: it is copied into the file and cut off.
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

"""The layers of a store while something is erased from it: emptied, or without just that."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from foredeck.derived.file import drop_tables, layer_file, open_layer_file, reported
from foredeck.derived.follower import Follower
from foredeck.derived.registry import LAYERS, load_layer
from foredeck.store.protocol import LocalStore
from foredeck.store.sqlite.transaction import immediate


@contextmanager
def layers_emptied(home: Path, store: LocalStore) -> Iterator[None]:
    """Empty every layer of the store, overwriting what was in it, and keep them so in the block.

    No text of what is erased in the block is left in a layer, however the block or the process
    ends: they are empty before it begins, and cannot be written to until it is over. They are
    made again when they are next asked for.
    """
    with ExitStack() as stack:
        for name in LAYERS:
            path = layer_file(home, name, store.lineage().id)
            if path.exists():
                stack.enter_context(_emptied(path))
        yield


@contextmanager
def layers_without(
    home: Path, store: LocalStore, documents: Collection[str], tombstones: Collection[str]
) -> Iterator[None]:
    """As `layers_emptied`, where whole documents are erased in the block: a layer that can take out
    what was made of them keeps the rest. `tombstones`: ids of the documents that tell of it.

    No text of them is left in its files, not in free space either. A block that fails, and a killed
    process, leave a layer that is made again.
    """
    with ExitStack() as stack:
        for name in LAYERS:
            path = layer_file(home, name, store.lineage().id)
            if path.exists():
                follower = stack.enter_context(Follower(store, load_layer(name), home))
                stack.enter_context(_without(follower, documents, tombstones))
        yield


@contextmanager
def _without(
    follower: Follower, documents: Collection[str], tombstones: Collection[str]
) -> Iterator[None]:
    with reported(follower.path):
        if not follower.take_out(documents):
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
                follower.settle(tombstones)
        finally:
            db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


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
    _overwrite(db)


def _overwrite(db: sqlite3.Connection) -> None:
    """Leave nothing of what was deleted in the file or its log."""
    # The log still has the old pages: it is copied into the file and cut off.
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

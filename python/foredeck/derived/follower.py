"""Keeps a layer in step with a store, also during erasure; rebuilds it after changes that it cannot
follow."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from foredeck.derived import LAYERS, load_layer
from foredeck.derived.layer import (
    PATIENCE_S,
    HasToBeMadeAgain,
    discard,
    drop_tables,
    layer_file,
    open_layer_file,
    reported,
)
from foredeck.errors import StoreUnavailable
from foredeck.store.protocol import Advance, Change, Lineage, Token
from foredeck.store.sqlite.connection import immediate, is_damaged, vacuum
from foredeck.store.store import Store

if TYPE_CHECKING:  # an engine never erases
    from foredeck.store.erasing import Erasure

log = logging.getLogger(__name__)

BATCH = 4000
"""Versions per transaction."""

_UNSETTLED = 0
"""In place of the tables' version: not erased yet."""

_POSITION = """
CREATE TABLE layer_position (
    version INTEGER NOT NULL, store_id TEXT NOT NULL, late INTEGER NOT NULL,
    token TEXT, time_ms INTEGER, making_until TEXT
)"""


@dataclass(frozen=True, slots=True)
class _Position:
    """How far a layer has come, and with which store.

    `making_until`: while the layer is made, the store's last transaction at the beginning; a
    tombstone up to there is of what was gone before.
    """

    version: int
    lineage: Lineage
    token: Token | None
    time_ms: int | None
    making_until: str | None


class Follower:
    """One layer of one store, one per thread. Raises `StoreUnavailable` for an unusable file."""

    def __init__(
        self,
        store: Store,
        name: str,
        home: Path,
        *,
        batch: int | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """`name`: of one of `LAYERS`; `patience_s`: wait for another writer before `LayerBusy`.

        `is_new` afterwards tells whether the layer was created.
        """
        self._store = store
        self._layer = layer = load_layer(name)
        self._batch = batch or BATCH
        self.path = layer_file(home, layer.name, store.lineage().id)
        self.is_new = not self.path.exists()
        self.db = open_layer_file(self.path, patience_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()

    @contextmanager
    def tables(self) -> Iterator[sqlite3.Connection]:
        """The tables, for questions. Raises `StoreUnavailable` if one of these fails."""
        with reported(self.path):
            yield self.db

    def catch_up(self, advance: Advance = lambda: None) -> int:
        """Takes in everything new; returns the number of versions.

        `advance` runs after each batch.
        """
        total = 0
        with reported(self.path):
            if self._is_current():
                return 0
            while (count := self._step()) is not None:
                total += count
                if 0 < count < self._batch:
                    break  # that was all: `advance` may end the work for lack of time
                advance()
            while self._layer.has_rest(self.db):
                self._layer.read_rest(self.db, self._store)
                advance()
        return total

    def make_again(self, advance: Advance = lambda: None) -> int:
        try:
            with immediate(self.db):
                self._begin()
        except sqlite3.DatabaseError:  # damaged: nothing in it is worth keeping
            self.db.close()
            discard(self.path)
            self.db = open_layer_file(self.path)
        return self.catch_up(advance)

    def take_out(self, documents: Collection[str]) -> bool:
        """Takes out what documents about to be erased gave; False: empty it.

        Until `settle`, whoever finds the layer rebuilds it.
        """
        if not self._is_current():
            return False
        try:
            with immediate(self.db):
                self._layer.take_out(self.db, self._store, documents)
                self.db.execute("UPDATE layer_position SET version = ?", (_UNSETTLED,))
        except HasToBeMadeAgain as error:
            log.info("%s is made again: %s", self.path, error)
            return False
        return True

    @property
    def is_unsettled(self) -> bool:
        """Whether it is as `take_out` left it."""
        position = self._position()
        return position is not None and position.version == _UNSETTLED

    def settle(self, tombstones: Collection[str]) -> None:
        """Continues after erasure, in the open transaction.

        Rebuilds if another erasure came between.
        """
        while (position := self._position()) is not None:
            changes = self._store.changes_since(position.token, limit=self._batch)
            if not changes:
                break
            if any(c.type == "forgotten" and c.id not in tombstones for c in changes):
                return
            self._layer.apply(self.db, self._store, changes)
            self._move(position, changes)
        self.db.execute("UPDATE layer_position SET version = ?", (self._layer.version,))

    def _is_current(self) -> bool:
        position = self._position()
        if position is None or not self._can_go_on(position) or self._layer.has_rest(self.db):
            return False
        return not self._store.changes_since(position.token, limit=1)

    def _step(self) -> int | None:
        # Rows and position in one transaction: a layer whose writer was killed holds exactly what
        # lies before its position. Writers take turns, and each reads the position again under the
        # lock, so two that follow one store only share the work.
        with immediate(self.db):
            position = self._checked(self._position())
            changes = self._store.changes_since(position.token, limit=self._batch)
            if not changes:
                return None
            if _tells_of_erasure(position, changes):
                self._begin()
                return 0
            self._layer.apply(self.db, self._store, changes)
            self._move(position, changes)
        return len(changes)

    def _position(self) -> _Position | None:
        try:
            row = self.db.execute("SELECT * FROM layer_position").fetchone()
        except sqlite3.OperationalError:  # an empty file, or one that was emptied
            return None
        version, store_id, late, *rest = row
        return _Position(version, Lineage(store_id, late), *rest)

    def _checked(self, position: _Position | None) -> _Position:
        if position is None or not self._can_go_on(position):
            self._begin()
            position = self._position()
            assert position is not None
        return position

    def _can_go_on(self, position: _Position) -> bool:
        if position.version > self._layer.version:
            raise StoreUnavailable(
                f"index {self.path}: a newer foredeck wrote it: upgrade foredeck, or make it again "
                f"with `foredeck doctor --rebuild {self._layer.name}`"
            )
        if position.version < self._layer.version or position.lineage != self._store.lineage():
            return False
        if position.token is None:
            return True
        transactions = self._store.transactions([position.token])
        return bool(transactions) and transactions[0].time_ms == position.time_ms

    def _begin(self) -> None:
        drop_tables(self.db)
        self._layer.create(self.db)
        self.db.execute(_POSITION)
        lineage = self._store.lineage()
        self.db.execute(
            "INSERT INTO layer_position VALUES (?, ?, ?, NULL, NULL, ?)",
            (self._layer.version, lineage.id, lineage.late, self._store.latest()),
        )

    def _move(self, position: _Position, changes: Sequence[Change]) -> None:
        last = changes[-1]
        until = position.making_until
        if any(change.token == until for change in changes):
            until = None
        self.db.execute(
            "UPDATE layer_position SET token = ?, time_ms = ?, making_until = ?",
            (last.token, last.time_ms, until),
        )


def _tells_of_erasure(position: _Position, changes: Sequence[Change]) -> bool:
    """A session was forgotten after the layer took some of it in."""
    if position.making_until is not None:
        tokens = [change.token for change in changes]
        if position.making_until not in tokens:
            return False
        end = len(tokens) - tokens[::-1].index(Token(position.making_until))
        changes = changes[end:]
    return any(change.type == "forgotten" for change in changes)


# While something is erased from the store


@contextmanager
def erasing(home: Path, store: Store, erasure: Erasure) -> Iterator[None]:
    """Leaves nothing erased in any layer, even in free space.

    The text is gone before the block begins, and layers are locked until it ends.
    """
    with ExitStack() as stack:
        for name in LAYERS:
            path = layer_file(home, name, store.lineage().id)
            if path.exists() and erasure.tombstones:
                follower = stack.enter_context(Follower(store, name, home))
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
        _overwrite(follower.db)
        with _held(follower.db):
            if not follower.is_unsettled:
                # Another process has made it again between the two transactions.
                drop_tables(follower.db)
            yield
            if follower.is_unsettled:
                follower.settle(erasure.tombstones)


@contextmanager
def _emptied(path: Path) -> Iterator[None]:
    with reported(path), closing(_without_tables(path)) as db, _held(db):
        drop_tables(db)  # what another process wrote between the two transactions
        yield


@contextmanager
def _held(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        db.execute("COMMIT")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _without_tables(path: Path) -> sqlite3.Connection:
    db = open_layer_file(path)
    try:
        db.execute("PRAGMA secure_delete = ON")
        with immediate(db):
            drop_tables(db)
        _overwrite(db)
    except sqlite3.DatabaseError as error:
        db.close()
        if not is_damaged(error):
            raise
        # It cannot be emptied, and must not be in the way of an erasure: a purge that stops here
        # is an interrupted one, beside which no command opens the store to make the layer again.
        discard(path)
        return open_layer_file(path)
    except BaseException:
        db.close()
        raise
    return db


def _overwrite(db: sqlite3.Connection) -> None:
    # The log still has the old pages: it is copied into the file and cut off.
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    vacuum(db)

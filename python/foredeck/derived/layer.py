"""Tables that follow from the store alone, in an SQLite file."""

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from foredeck.errors import StoreUnavailable
from foredeck.store.location import make_private_file
from foredeck.store.protocol import Advance, Change, Head, Token, portions
from foredeck.store.sqlite.connection import file_size, is_damaged, primary_code, vacuum
from foredeck.store.store import Store


class OutOfTime(Exception):
    """Work on a layer took too long, and stopped between two steps."""


def until(end: float, out_of_time: type[Exception] = OutOfTime) -> Advance:
    """A step function that raises `out_of_time` after `end` (`time.monotonic`)."""

    def advance() -> None:
        if time.monotonic() > end:
            raise out_of_time

    return advance


class HasToBeMadeAgain(Exception):
    """A layer is emptied, since it cannot take something out."""


class Layer(ABC):
    """Tables in a file of their own, kept in step by `derived.follower`.

    They must follow from the changes and their order alone, not from batches.
    """

    name: str
    version: int
    tables: Sequence[str]

    def create(self, db: sqlite3.Connection) -> None:
        """Creates the tables in the open transaction."""
        for statement in self.tables:
            db.execute(statement)

    @abstractmethod
    def apply(self, db: sqlite3.Connection, store: Store, changes: Sequence[Change]) -> None:
        """Takes in further versions in the open transaction, skipping erased ones."""

    def has_rest(self, db: sqlite3.Connection) -> bool:
        """Whether something taken in is still to be read."""
        del db
        return False

    def read_rest(self, db: sqlite3.Connection, store: Store) -> None:
        """Reads some of it in its own transactions."""
        del db, store

    def take_out(self, db: sqlite3.Connection, store: Store, documents: Collection[str]) -> None:
        """Takes documents out in the open transaction; the store still has them.

        Raises `HasToBeMadeAgain`, always if rows follow from several documents.
        """
        del db, store, documents
        raise HasToBeMadeAgain("Rows follow from more than one document each.")


def brought_portions(
    db: sqlite3.Connection, store: Store, changes: Sequence[Change], types: Collection[str]
) -> Iterator[list[Head]]:
    """Versions of these types from `absent` and the changes, in portions."""
    queue = take_absent(db)
    queue += [change for change in changes if change.type in types]
    for portion in portions(queue, _PORTION):
        yield brought_versions(store, portion)


def brought_versions(store: Store, changes: Sequence[Change]) -> list[Head]:
    """Their heads in order, without erased ones."""
    newest = store.heads(change.id for change in changes)
    heads = []
    for change in changes:
        head = newest.get(change.id)
        if head is not None and head.token != change.token:
            head = store.head(change.id, change.token)
        if head is not None and head.token == change.token:
            heads.append(head)
    return heads


ABSENT_TABLE = (
    "CREATE TABLE absent (document BLOB NOT NULL, token TEXT NOT NULL, type TEXT NOT NULL)"
)
"""For layers that keep absent versions."""

_PORTION = 100
_TRIED_AGAIN = 1000
"""Retried with each batch."""


def note_absent(db: sqlite3.Connection, head: Head) -> None:
    """Keeps a version for later."""
    id = head.id.encode("utf-8", "surrogatepass")
    db.execute("INSERT INTO absent VALUES (?, ?, ?)", (id, head.token, head.type))


def take_absent(db: sqlite3.Connection) -> list[Change]:
    """Removes and returns the longest-waiting versions."""
    rows = db.execute(
        "DELETE FROM absent WHERE rowid IN (SELECT rowid FROM absent ORDER BY rowid LIMIT ?)"
        " RETURNING document, token, type",
        (_TRIED_AGAIN,),
    ).fetchall()
    return [
        Change(Token(token), 0, id.decode("utf-8", "surrogatepass"), type)
        for id, token, type in rows
    ]


@dataclass(slots=True)
class TimeBudget:
    """A lagging layer takes in one batch even without time."""

    left_s: float

    @contextmanager
    def spent(self) -> Iterator[float]:
        """Yields the seconds left, less what the block takes."""
        began = time.monotonic()
        try:
            yield self.left_s
        finally:
            self.left_s = max(0.0, self.left_s - (time.monotonic() - began))


# The SQLite file of a layer: where it is, how it is opened, emptied and thrown away

FOLDER = "layers"
PATIENCE_S = 60.0
"""Of another writer."""

_FULL_TEXT = (
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%USING fts5%'"
)


class LayerBusy(StoreUnavailable):
    """Another process writes for too long."""


def layer_file(home: Path, layer: str, store_id: str) -> Path:
    """A layer's file, one per store of a state folder."""
    return home / FOLDER / f"{layer}-{store_id}.sqlite"


def open_layer_file(path: Path, patience_s: float = PATIENCE_S) -> sqlite3.Connection:
    """A connection to the file, created (0600) if missing or damaged. Raises `StoreUnavailable`."""
    try:
        make_private_file(path)
        return _connect(path, patience_s)
    except OSError as error:
        raise StoreUnavailable(f"index {path}: {error.strerror or error}") from error
    except sqlite3.DatabaseError as error:
        if not is_damaged(error):
            raise StoreUnavailable(f"index {path}: {error}") from error
    discard(path)
    make_private_file(path)
    return _connect(path, patience_s)


def _connect(path: Path, patience_s: float) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=patience_s, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")  # with which readers never wait for the writer
        db.execute("PRAGMA synchronous = normal")
        db.execute("PRAGMA temp_store = memory")
        db.execute("SELECT count(*) FROM sqlite_schema")
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Turns `sqlite3.Error` into `StoreUnavailable` with advice."""
    try:
        yield
    except sqlite3.Error as error:
        if primary_code(error) == sqlite3.SQLITE_BUSY:
            raise LayerBusy(f"index {path}: another process is writing to it") from error
        raise StoreUnavailable(
            f"index {path}: {error}. `foredeck doctor --rebuild` makes it again from the store."
        ) from error


def discard(path: Path) -> None:
    """Removes the file and its log."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def compact(path: Path) -> tuple[int, int]:
    """Frees space; returns sizes before and after. Raises `StoreUnavailable`."""
    with closing(open_layer_file(path)) as db, reported(path):
        before = file_size(db)
        for (name,) in db.execute(_FULL_TEXT).fetchall():
            db.execute(f"""INSERT INTO "{name}" ("{name}") VALUES ('optimize')""")
        return before, vacuum(db)[1]


def drop_tables(db: sqlite3.Connection) -> None:
    """Drops everything in the open transaction."""
    virtual = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'"
    plain = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    for statement in (virtual, plain):  # a virtual table takes its own tables with it
        for (name,) in db.execute(statement).fetchall():
            db.execute(f'DROP TABLE "{name}"')

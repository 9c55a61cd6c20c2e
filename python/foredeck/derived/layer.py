"""What a derived layer is: tables that follow from what is stored, and from nothing else; their
SQLite file; and what all layers share.
"""

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
from foredeck.store.protocol import Advance, Change, Head, LocalStore, Token, portions
from foredeck.store.sqlite.connection import file_size, is_damaged, primary_code, vacuum


class OutOfTime(Exception):
    """Work on a layer took too long. It was broken off between two steps, each of which is kept."""


def until(end: float, out_of_time: type[Exception] = OutOfTime) -> Advance:
    """To be called between two steps of work: raises `out_of_time` after `end`, by
    `time.monotonic`."""

    def advance() -> None:
        if time.monotonic() > end:
            raise out_of_time

    return advance


class HasToBeMadeAgain(Exception):
    """A layer cannot take out what is asked of it. It is emptied instead."""


class Layer(ABC):
    """Tables in a file of their own, kept in step with a store by `derived.follower`.

    What they hold must follow from the changes and their order alone, not from how these were
    cut into batches: then a layer that was killed and resumed equals one that was made at once.

    name     what `foredeck doctor --rebuild` calls it
    version  of its tables; where the file has another one, the layer is made again
    tables   the statements that make them; names that begin with `layer_` are taken
    """

    name: str
    version: int
    tables: Sequence[str]

    def create(self, db: sqlite3.Connection) -> None:
        """Make the tables, in the open transaction."""
        for statement in self.tables:
            db.execute(statement)

    @abstractmethod
    def apply(self, db: sqlite3.Connection, store: LocalStore, changes: Sequence[Change]) -> None:
        """Take in versions that came after all that were taken in before, in the open transaction.

        What has meanwhile been erased from the store is left out.
        """

    def has_rest(self, db: sqlite3.Connection) -> bool:
        """Whether something that was taken in is still to be read."""
        del db
        return False

    def read_rest(self, db: sqlite3.Connection, store: LocalStore) -> int:
        """Read some of that, in transactions of its own; how many documents that were. What is
        read here may be the text of others: a little at a time, and none for longer than a bound.
        """
        del db, store
        return 0

    def take_out(
        self, db: sqlite3.Connection, store: LocalStore, documents: Collection[str]
    ) -> None:
        """Take all that was made of these documents out again, in the open transaction, so that no
        row and no index holds any of it. The store still has them.

        Raises `HasToBeMadeAgain`, always where its rows do not follow from one document each.
        """
        del db, store, documents
        raise HasToBeMadeAgain("Rows follow from more than one document each.")


def brought_portions(
    db: sqlite3.Connection, store: LocalStore, changes: Sequence[Change], types: Collection[str]
) -> Iterator[list[Head]]:
    """Versions of these types that have waited in the table `absent`, and those of the changes,
    some at a time: their texts may be held together."""
    wanted = take_absent(db)
    wanted += [change for change in changes if change.type in types]
    for portion in portions(wanted, _PORTION):
        yield brought_versions(store, portion)


def brought_versions(store: LocalStore, changes: Sequence[Change]) -> list[Head]:
    """Their heads, in the order of the changes; what was erased since is left out."""
    newest = store.heads(change.id for change in changes)
    found = []
    for change in changes:
        head = newest.get(change.id)
        if head is not None and head.token != change.token:
            head = store.head(change.id, change.token)
        if head is not None and head.token == change.token:
            found.append(head)
    return found


ABSENT_TABLE = (
    "CREATE TABLE absent (document BLOB NOT NULL, token TEXT NOT NULL, type TEXT NOT NULL)"
)
"""A layer that keeps them has this among its tables."""

_PORTION = 100
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


@dataclass(slots=True)
class TimeBudget:
    """Seconds that are left. A layer that is behind takes in a batch even where none is."""

    left_s: float

    @contextmanager
    def spent(self) -> Iterator[float]:
        """Gives the seconds that are left; what the block takes of them is gone afterwards."""
        began = time.monotonic()
        try:
            yield self.left_s
        finally:
            self.left_s = max(0.0, self.left_s - (time.monotonic() - began))


# The SQLite file of a layer: where it is, how it is opened, emptied and thrown away

FOLDER = "layers"
PATIENCE_S = 60.0
"""How long a writer waits for another one, which writes a batch at a time."""

_FULL_TEXT = (
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%USING fts5%'"
)


class LayerBusy(StoreUnavailable):
    """Another process has been writing to the file for longer than could be waited."""


def layer_file(home: Path, layer: str, store_id: str) -> Path:
    """The file of a layer: one for each store that a state folder works with."""
    return home / FOLDER / f"{layer}-{store_id}.sqlite"


def open_layer_file(path: Path, patience_s: float = PATIENCE_S) -> sqlite3.Connection:
    """A connection to the file, which is made (0600) where there is none, or where it is damaged:
    everything in it can be made again.

    `patience_s`: how long a writer waits for another. Raises `StoreUnavailable`.
    """
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
    """Raise every `sqlite3.Error` of the block as a `StoreUnavailable` that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        if primary_code(error) == sqlite3.SQLITE_BUSY:
            raise LayerBusy(f"index {path}: another process is writing to it") from error
        raise StoreUnavailable(
            f"index {path}: {error}. `foredeck doctor --rebuild` makes it again from the store."
        ) from error


def discard(path: Path) -> None:
    """Remove the file and its log."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def compact(path: Path) -> tuple[int, int]:
    """Merge the full-text indexes of the file, each into one piece, and give its free space back
    to the disk; its size in bytes before and after. Raises `StoreUnavailable`, also where another
    process keeps writing to it."""
    with closing(open_layer_file(path)) as db, reported(path):
        before = file_size(db)
        for (name,) in db.execute(_FULL_TEXT).fetchall():
            db.execute(f"""INSERT INTO "{name}" ("{name}") VALUES ('optimize')""")
        return before, vacuum(db)[1]


def drop_tables(db: sqlite3.Connection) -> None:
    """Drop everything in the file, in the open transaction."""
    virtual = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'"
    plain = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    for statement in (virtual, plain):  # a virtual table takes its own tables with it
        for (name,) in db.execute(statement).fetchall():
            db.execute(f'DROP TABLE "{name}"')

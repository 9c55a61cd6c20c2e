"""What a derived layer is: tables that follow from what is stored, and from nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Protocol

from foredeck.store.protocol import Change, LocalStore


class HasToBeMadeAgain(Exception):
    """A layer cannot take out what is asked of it. It is emptied instead."""


class ReadAtOnce:
    """For layers that read all of a document when they take it in."""

    def has_rest(self, db: sqlite3.Connection) -> bool:
        """See `Layer.has_rest`."""
        del db
        return False

    def read_rest(self, db: sqlite3.Connection, store: LocalStore) -> int:
        """See `Layer.read_rest`."""
        del db, store
        return 0


class Layer(Protocol):
    """Tables in a file of their own, kept in step with a store by `derived.follower`.

    What they hold must follow from the changes and their order alone, not from how these were
    cut into batches: then a layer that was killed and resumed equals one that was made at once.

    name     what `foredeck doctor --rebuild` calls it
    version  of its tables; where the file has another one, the layer is made again
    """

    name: str
    version: int

    def create(self, db: sqlite3.Connection) -> None:
        """Make the tables, in the open transaction. Names that begin with `layer_` are taken."""

    def apply(self, db: sqlite3.Connection, store: LocalStore, changes: Sequence[Change]) -> None:
        """Take in versions that came after all that were taken in before, in the open transaction.

        What has meanwhile been erased from the store is left out.
        """

    def has_rest(self, db: sqlite3.Connection) -> bool:
        """Whether something that was taken in is still to be read."""

    def read_rest(self, db: sqlite3.Connection, store: LocalStore) -> int:
        """Read some of that, in transactions of its own; how many documents that were. What is
        read here may be anybody's text: a little at a time, and none for longer than a bound.
        """

    def take_out(
        self, db: sqlite3.Connection, store: LocalStore, documents: Collection[str]
    ) -> None:
        """Take all that was made of these documents out again, in the open transaction, so that no
        row and no index holds any of it. The store still has them.

        Raises `HasToBeMadeAgain`, always where no layer's rows follow from one document each.
        """

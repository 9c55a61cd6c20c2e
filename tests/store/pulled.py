"""A namespace of XTDB read as a store: all that it holds is pulled back before each read."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from foredeck.store.copying import copy
from foredeck.store.protocol import Batch, Origin, Token
from foredeck.store.store import Store, open_sqlite
from foredeck_xtdb.database.adapter import Database, open_xtdb


class Pulled:
    """Commits to the database; reads, as a `Store`, a copy of everything in it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._folder = TemporaryDirectory()
        self._copy = open_sqlite(Path(self._folder.name) / "pulled.db")

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token:
        return self.database.commit(batch, origin=origin)

    def erase(self, ids: Collection[str], blobs: Collection[str]) -> None:
        self.database.erase(ids, blobs)
        self._copy.erase(ids, blobs)

    def pull(self) -> Store:
        """A copy of everything in the database now."""
        copy(self.database, self._copy)
        return self._copy

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pull(), name)

    def close(self) -> None:
        self.database.close()
        self._copy.close()
        self._folder.cleanup()


def open_pulled(url: str, *, planned: bool = False, **options: Any) -> Pulled:
    """`planned`: as on a server that orders no commits by itself."""
    database = open_xtdb(url, **options)
    if planned:
        database._writer._function = None
    return Pulled(database)

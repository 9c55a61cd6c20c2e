"""The life of memory on SQLite and on XTDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import settings

from examples import examples
from foredeck.store.protocol import Store
from foredeck.store.sqlite.adapter import SqliteStore, open_sqlite
from foredeck_xtdb.database.adapter import XtdbStore
from foredeck_xtdb.node import NodeFolder
from memory.machine import LifeOfMemory
from store.xtdb_node import opener


class OnSqlite(LifeOfMemory):
    """One file."""

    store: SqliteStore

    def open_store(self, folder: Path) -> Store:
        """See `LifeOfMemory`."""
        return open_sqlite(folder / "memory.db")

    def erase(self, ids: Any) -> None:
        """See `LifeOfMemory`."""
        self.store.erase(sorted(ids), [])


def test_whatever_happens_on_sqlite() -> None:
    case = OnSqlite.TestCase
    case.settings = settings(max_examples=examples(60), stateful_step_count=25, deadline=None)
    case("runTest").debug()


def test_whatever_happens_on_xtdb(memory_node: NodeFolder) -> None:
    class OnXtdb(LifeOfMemory):
        store: XtdbStore

        def open_store(self, folder: Path) -> Store:
            del folder
            return opener(memory_node)()

        def erase(self, ids: Any) -> None:
            self.store.erase(sorted(ids), [])

    case = OnXtdb.TestCase
    case.settings = settings(max_examples=3, stateful_step_count=12, deadline=None)
    case("runTest").debug()

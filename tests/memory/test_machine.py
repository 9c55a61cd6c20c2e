"""The life of memory in a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import settings

from examples import examples
from foredeck.store.store import Store, open_sqlite
from memory.machine import LifeOfMemory


class OnSqlite(LifeOfMemory):
    """One file."""

    store: Store

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

"""The SQLite store under the contract that all stores share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

from examples import examples
from foredeck.store.store import Store, open_sqlite

from .contract import CommitContract, HeadContract, VersionContract, store
from .contract_origin import OriginContract
from .contract_processes import ProcessContract
from .factory import StoreFactory
from .model import StoreComparison

__all__ = ["store"]


@pytest.fixture
def factory(tmp_path: Path) -> Iterator[StoreFactory]:
    """An empty database; generous with time, since the machine may be busy."""
    made = StoreFactory(partial(open_sqlite, tmp_path / "store.db", busy_timeout_ms=30_000))
    yield made
    made.close_all()


class TestVersions(VersionContract):
    """Versions, history and as-of reads."""


class TestHeads(HeadContract):
    """Heads, queries, changes."""


class TestCommits(CommitContract):
    """Atomic commits, compare-and-put, blobs."""


class TestOrigins(OriginContract):
    """Imported transactions."""


class TestProcesses(ProcessContract):
    """Several processes, killed ones."""


class SqliteComparison(StoreComparison):
    """SQLite against a few dicts."""

    def open_store(self, folder: Path) -> Store:
        """The store in `folder`."""
        return open_sqlite(folder / "store.db")


TestComparison = SqliteComparison.TestCase
TestComparison.settings = settings(max_examples=examples(60), stateful_step_count=25, deadline=None)

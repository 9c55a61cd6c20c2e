"""The XTDB store under the contract that all stores share, on a real node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from foredeck.store.protocol import Store
from foredeck.store.xtdb.node import NodeFolder

from .contract import CommitContract, HeadContract, VersionContract, store
from .contract_origin import OriginContract
from .contract_processes import ProcessContract
from .factory import StoreFactory
from .model import StoreComparison
from .xtdb_node import memory_node, opener, runtime

__all__ = ["memory_node", "runtime", "store"]


@pytest.fixture
def factory(memory_node: NodeFolder) -> Iterator[StoreFactory]:
    """An empty namespace on the shared node."""
    made = StoreFactory(opener(memory_node))
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


def test_random_operations(memory_node: NodeFolder) -> None:
    """XTDB against a few dicts."""

    class XtdbComparison(StoreComparison):
        def open_store(self, folder: Path) -> Store:
            """One namespace for each folder."""
            named = {"namespace": f"m{folder.name.lower().replace('_', '-')}"}
            return opener(memory_node, **named)()

    case = XtdbComparison.TestCase
    case.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
    case("runTest").debug()

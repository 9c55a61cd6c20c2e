"""What XTDB gives back under the contract of stores, on a real node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from examples import examples
from foredeck.model.records import NicknameDocument
from foredeck_xtdb.database.adapter import open_xtdb
from foredeck_xtdb.node import NodeFolder

from .contract import CommitContract, VersionContract, store
from .contract_origin import OriginContract
from .contract_processes import ProcessContract
from .documents import batch
from .factory import StoreFactory
from .flaky_proxy import flaky_proxy
from .model import StoreComparison
from .pulled import open_pulled
from .xtdb_node import opener, options_of

__all__ = ["store"]


@pytest.fixture
def factory(memory_node: NodeFolder) -> Iterator[StoreFactory]:
    """An empty namespace on the shared node."""
    made = StoreFactory(opener(memory_node))
    yield made
    made.close_all()


class TestVersions(VersionContract):
    """Versions, history and as-of reads."""


class TestCommits(CommitContract):
    """Atomic commits, compare-and-put, blobs."""


class TestOrigins(OriginContract):
    """Imported transactions."""


class TestProcesses(ProcessContract):
    """Several processes, killed ones."""


@pytest.mark.parametrize("planned", [False, True])
def test_everything_is_pulled_back_from_the_node(memory_node: NodeFolder, planned: bool) -> None:
    """A few dicts against all that the node holds, read anew after each step."""

    class Comparison(StoreComparison):
        options: dict[str, Any] | None = None

        def open_store(self, folder: Path) -> Any:  # noqa: ARG002
            if self.options is None:
                self.options = options_of(memory_node)
            return open_pulled(planned=planned, **self.options)

    case = Comparison.TestCase
    case.settings = settings(max_examples=examples(30), stateful_step_count=12, deadline=None)
    case("runTest").debug()


def test_a_transaction_keeps_what_was_not_erased_of_it(memory_node: NodeFolder) -> None:
    """The record of one with a nickname is written anew: the nickname's id is a user's text."""
    named = [NicknameDocument(id=f"nickname:{name}", object="a").seal() for name in "ab"]
    with closing(open_xtdb(**options_of(memory_node))) as store:
        token = store.commit(batch(*named))
        store.erase(["nickname:a"], [])
        assert [record.changes for record in store.records(None, 10)] == [
            (("nickname:b", "nickname"),)
        ]
        assert [origin.token for origin in store.transactions([token])] == [token]


class Planned:
    """Every commit matches the state that it was planned on; the node orders none."""

    @pytest.fixture
    def factory(self, memory_node: NodeFolder) -> Iterator[StoreFactory]:
        """An empty namespace on the shared node."""
        made = StoreFactory(opener(memory_node, planned=True))
        yield made
        made.close_all()


class TestPlannedCommits(Planned, CommitContract):
    """Atomic commits, compare-and-put, blobs."""


class TestPlannedOrigins(Planned, OriginContract):
    """Imported transactions."""


class TestPlainServer(ProcessContract):
    """Several processes on a server that only does what XTDB's own does."""

    @pytest.fixture
    def factory(self, memory_node: NodeFolder) -> Iterator[StoreFactory]:
        """An empty namespace on the shared node, behind a proxy."""
        with flaky_proxy(memory_node.running().port, plain=True) as proxy:
            made = StoreFactory(opener(memory_node, url=proxy.url))
            yield made
            made.close_all()

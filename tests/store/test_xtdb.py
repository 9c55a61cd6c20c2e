"""The XTDB store under the contract that all stores share, on a real node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

from examples import examples
from foredeck.model.documents import Document
from foredeck.model.records import NicknameDocument
from foredeck.store.protocol import Origin, Store, Token
from foredeck_xtdb.database.adapter import open_xtdb
from foredeck_xtdb.node import NodeFolder

from .contract import CommitContract, HeadContract, VersionContract, store
from .contract_origin import OriginContract
from .contract_processes import ProcessContract
from .documents import batch, note
from .factory import StoreFactory
from .flaky_proxy import flaky_proxy
from .model import StoreComparison
from .xtdb_node import open_planning, opener

__all__ = ["store"]


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


def test_what_came_in_order_needs_no_query_to_be_read(
    memory_node: NodeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delivered transactions cost what local ones do."""
    tokens = [Token(f"feedbeef-{n}") for n in range(3)]
    with closing(opener(memory_node)()) as store:
        for n, token in enumerate(tokens):
            store.commit(batch(note("a", f"v{n}")), origin=Origin(token, 1_000 + n))
        monkeypatch.setattr(store.client, "query", lambda *_: pytest.fail("asked a query"))
        assert [head.token for head in store.history("a")] == tokens
        found = [store.get("a", Document, token) for token in tokens]
    assert [document and document.content for document in found] == ["v0", "v1", "v2"]


def test_a_transaction_keeps_what_was_not_erased_of_it(memory_node: NodeFolder) -> None:
    """The record of one with a nickname is written anew: the nickname's id is a user's text."""
    named = [NicknameDocument(id=f"nickname:{name}", object="a").seal() for name in "ab"]
    with closing(opener(memory_node)()) as store:
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
        made = StoreFactory(partial(open_planning, opener(memory_node)))
        yield made
        made.close_all()


class TestPlannedVersions(Planned, VersionContract):
    """Versions, history and as-of reads."""


class TestPlannedCommits(Planned, CommitContract):
    """Atomic commits, compare-and-put, blobs."""


class TestPlannedOrigins(Planned, OriginContract):
    """Imported transactions."""


class TestPlannedProcesses(Planned, ProcessContract):
    """Several processes, killed ones."""


class TestPlainServer(ProcessContract):
    """Several processes on a server that only does what XTDB's own does."""

    @pytest.fixture
    def factory(self, memory_node: NodeFolder) -> Iterator[StoreFactory]:
        """An empty namespace on the shared node, behind a proxy."""
        make = opener(memory_node)
        running = memory_node.running()
        assert running is not None
        with flaky_proxy(running.port, plain=True) as proxy:
            made = StoreFactory(partial(open_xtdb, proxy.url, **make.keywords))
            yield made
            made.close_all()


@pytest.mark.parametrize("planned", [False, True])
def test_random_operations(memory_node: NodeFolder, planned: bool) -> None:
    """XTDB against a few dicts."""

    class XtdbComparison(StoreComparison):
        def open_store(self, folder: Path) -> Store:
            """One namespace for each folder."""
            named = {"namespace": f"m{folder.name.lower().replace('_', '-')}"}
            make = opener(memory_node, **named)
            return open_planning(make) if planned else make()

    case = XtdbComparison.TestCase
    case.settings = settings(max_examples=examples(25), stateful_step_count=20, deadline=None)
    case("runTest").debug()

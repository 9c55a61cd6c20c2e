"""The store on a server that somebody else runs: XTDB's own, which asks for no token, waits for
nothing by itself, and has no other functions. FOREDECK_TEST_STOCK names a real one (its URL) to
take the place of the imitation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from functools import partial

import pytest

from foredeck.errors import StoreError
from foredeck_xtdb.database.client import OutcomeUnknown, XtdbClient

from .contract import CommitContract, store
from .documents import batch, note
from .factory import StoreFactory
from .journaled import new_namespace
from .pulled import open_pulled
from .stock_server import stock_server

__all__ = ["store"]

REAL = os.environ.get("FOREDECK_TEST_STOCK")


@pytest.fixture
def stock(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server as XTDB comes."""
    if REAL is not None:
        yield REAL
        return
    with stock_server(request.getfixturevalue("memory_node")) as server:
        yield server.url


@pytest.fixture
def factory(stock: str) -> Iterator[StoreFactory]:
    """An empty namespace on it."""
    made = StoreFactory(partial(open_pulled, stock, namespace=new_namespace(), timeout_ms=60_000))
    yield made
    made.close_all()


class TestCommits(CommitContract):
    """Atomic commits, compare-and-put, blobs."""


def test_two_stores_race_by_the_clock(factory: StoreFactory) -> None:
    one, two = factory.open(), factory.open()
    for n in range(10):
        one.commit(batch(note("a", f"one {n}")))
        two.commit(batch(note("a", f"two {n}")))
    assert len(one.history("a")) == 20
    assert len(two.changes_since(None)) == 20


def test_an_await_ends(stock: str) -> None:
    client = XtdbClient(stock, timeout_ms=600)
    with closing(client), pytest.raises(OutcomeUnknown, match="has not indexed"):
        client.await_tx(10**9)


def test_a_query_that_fails_while_it_runs_is_no_empty_answer(stock: str) -> None:
    with (
        closing(XtdbClient(stock)) as client,
        pytest.raises(StoreError, match="failed while it ran"),
    ):
        client.ask('{:query {:find [?s] :where [[(subs "ab" 9) ?s]]} :in-args []}')

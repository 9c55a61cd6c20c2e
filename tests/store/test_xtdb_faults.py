"""What goes wrong between the XTDB store and its server."""

from __future__ import annotations

import socket
import threading
from contextlib import closing
from functools import partial

import pytest

from foredeck.errors import ConfigError, StoreUnavailable
from foredeck.store.protocol import Batch
from foredeck_xtdb.database.adapter import open_xtdb
from foredeck_xtdb.database.client import XtdbClient
from foredeck_xtdb.node import NodeFolder
from ports import dead_url

from .documents import batch, note
from .flaky_proxy import flaky_proxy
from .xtdb_node import opener, options_of


def port_of(node: NodeFolder) -> int:
    """Where the node listens."""
    return node.running().port


@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize("of", [b"submit-tx", b"await-tx", b"tx-committed"])
def test_a_lost_answer_neither_loses_nor_doubles_a_commit(
    memory_node: NodeFolder, of: bytes, lost: int
) -> None:
    plain = of != b"submit-tx"
    with flaky_proxy(port_of(memory_node), of, plain=plain) as proxy:
        options = options_of(memory_node, url=proxy.url, timeout_ms=20_000)
        with closing(open_xtdb(**options)) as store:
            store.commit(batch(note("a", "one")))
            proxy.drop = lost
            token = store.commit(Batch(puts=[note("a", "two"), note("b")], expect={"b": None}))
            assert 1 <= proxy.dropped <= lost
            assert store.latest() == token
            assert len(store.history("a")) == 2
            assert len(store.history("b")) == 1
            assert len(store.changes_since(None)) == 3
            store.commit(batch(note("a", "three")))
            assert len(store.history("a")) == 3


def test_a_lost_answer_of_a_commit_that_the_node_orders(memory_node: NodeFolder) -> None:
    options = options_of(memory_node)
    with (
        flaky_proxy(port_of(memory_node)) as proxy,
        closing(open_xtdb(**options)) as other,
        closing(open_xtdb(**options | {"url": proxy.url})) as store,
    ):
        first = other.commit(batch(note("a", "one")))
        proxy.drop = 1
        token = store.commit(Batch(puts=[note("a", "two"), note("b")], expect={"b": None}))
        assert proxy.dropped == 1
        assert token.partition("-")[0] != first.partition("-")[0]
        assert other.latest() == store.latest() == token
        assert [len(other.history(id)) for id in ("a", "b")] == [2, 1]
        assert len(other.changes_since(None)) == 3
        other.commit(batch(note("a", "three")))
        assert [head.token for head in other.history("a")][:2] == [first, token]


def test_a_wrong_token_is_reported(memory_node: NodeFolder) -> None:
    for token in (None, "not the token of this node"):
        with pytest.raises(StoreUnavailable, match="token"):
            open_xtdb(**options_of(memory_node, token=token))


def test_an_unreachable_server_is_reported() -> None:
    with dead_url() as url, pytest.raises(StoreUnavailable, match="foredeck xtdb up"):
        open_xtdb(url)


def test_a_server_that_never_answers_times_out() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(StoreUnavailable, match="did not answer"),
    ):
        open_xtdb(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_ms=200)


def test_a_namespace_is_a_plain_name(memory_node: NodeFolder) -> None:
    for name in ("", "A", "a b", "a/b", "a}", "x" * 65):
        with pytest.raises(ConfigError, match="cannot name a store"):
            open_xtdb(**options_of(memory_node, namespace=name))


def test_stores_of_two_namespaces_are_separate(memory_node: NodeFolder) -> None:
    with closing(opener(memory_node)()) as one, closing(opener(memory_node)()) as two:
        one.commit(batch(note("a", "one", session="s")))
        assert two.latest() is None
        assert two.head("a") is None
        assert two.query("note", {"session": "s"}) == []


def test_a_server_without_a_token_gets_none(memory_node: NodeFolder) -> None:
    client = XtdbClient(f"http://127.0.0.1:{port_of(memory_node)}")
    with closing(client), pytest.raises(StoreUnavailable, match="asks for a token"):
        client.status()


def test_many_threads_with_a_store_each(memory_node: NodeFolder) -> None:
    make = partial(open_xtdb, **options_of(memory_node))
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with closing(make()) as store:
                for n in range(10):
                    store.commit(batch(note("shared", f"{number} {n}"), note(f"{number} {n}")))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with closing(make()) as store:
        assert len(store.history("shared")) == 60
        assert len(store.changes_since(None)) == 120

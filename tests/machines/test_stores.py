"""Stores on two nodes over one Postgres."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial

import pytest

from foredeck.errors import Conflict, StoreUnavailable
from foredeck.store.protocol import Token
from foredeck_xtdb.database.adapter import Database
from foredeck_xtdb.node import stop
from machines.two_nodes import Machines, open_either
from processes import STARTED
from store.contract_processes import PATIENCE_S, ProcessContract
from store.documents import batch, note
from store.factory import StoreFactory


class TestProcesses(ProcessContract):
    """Several processes, each on either of the machines."""

    @pytest.fixture
    def factory(self, machines: Machines) -> Iterator[StoreFactory]:
        """An empty namespace that both machines see."""
        made = StoreFactory(partial(open_either, machines.openers()))
        yield made
        made.close_all()


def tell(store: Database, id: str) -> list[tuple[str, int, object]]:
    """The history of a document, once all that is in the log is indexed."""
    store.client.catch_up()
    return [(head.token, head.time_ms, head.fields["text_hash"]) for head in store.history(id)]


def test_both_machines_tell_the_same_history(machines: Machines) -> None:
    one, two = (make() for make in machines.openers())
    with closing(one), closing(two):
        tokens = [(one, two)[n % 2].commit(batch(note("a", f"{n} " * 400))) for n in range(6)]
        assert [token for token, _, _ in tell(one, "a")] == tokens
        assert tell(one, "a") == tell(two, "a")
        for n, token in enumerate(tokens):
            for database in (one, two):
                assert content(database, "a", token) == f"{n} " * 400
        assert list(one.changes_since(None)) == list(two.changes_since(None))
        assert one.latest() == two.latest() == tokens[-1]


def test_what_another_machine_has_written_is_expected_in_vain(machines: Machines) -> None:
    one, two = (make() for make in machines.openers())
    with closing(one), closing(two):
        token = one.commit(batch(note("a", "one")))
        two.commit(batch(note("a", "two"), expect={"a": token}))
        for store in (one, two):
            with pytest.raises(Conflict, match="'a' is at"):
                store.commit(batch(note("a", "lost"), expect={"a": token}))
        assert len(tell(one, "a")) == 2


@pytest.mark.parametrize("crash", [False, True])
def test_postgres_away_and_back(machines: Machines, crash: bool) -> None:
    openers = machines.openers()
    one, two = (make(timeout_ms=2_000) for make in openers)
    with closing(one), closing(two):
        for n in range(3):
            one.commit(batch(note("a", str(n))))
        machines.postgres.stop(crash=crash)
        try:
            for store in (one, two):
                with pytest.raises(StoreUnavailable):
                    store.commit(batch(note("a", "away")))
        finally:
            machines.postgres.start()
            STARTED.forget()
    one, two = (patiently(make) for make in openers)
    with closing(one), closing(two):
        back = [one.commit(batch(note("b", "one"))), two.commit(batch(note("b", "two")))]
        assert [token for token, _, _ in tell(one, "b")] == back
        assert [tell(two, id) for id in ("a", "b")] == [tell(one, id) for id in ("a", "b")]
        contents = [content(one, "a", Token(token)) for token, _, _ in tell(one, "a")]
        assert contents[:3] == ["0", "1", "2"]
        # A commit whose outcome was not known may have come through, each of the two once.
        assert contents[3:] in ([], ["away"], ["away"] * 2)


def test_a_node_that_has_ended_fails_no_other_test(machines: Machines) -> None:
    stop(machines.nodes[0])
    machines.heal()
    STARTED.forget()
    one, two = (make() for make in machines.openers())
    with closing(one), closing(two):
        assert tell(two, "a") == tell(one, "a") == []


def patiently(make: partial[Database]) -> Database:
    """Opens a store once Postgres is there again: until then a node may answer with an error."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return make()
        except StoreUnavailable:
            if time.monotonic() > deadline:
                raise


def content(store: Database, id: str, at: Token) -> str | None:
    """The text of one version."""
    ((_, document),) = store.versions({id: [at]})
    return document.content

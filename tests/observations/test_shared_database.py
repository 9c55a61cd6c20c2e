"""Machines that share a database: it decides who observes. While it is away, nobody begins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from time import sleep
from typing import TypeVar

import pytest

from foredeck.errors import StoreUnavailable
from foredeck.model.records import ForgottenDocument, forgotten_id
from foredeck.observations.lease import LEASE_MS, ObservingBusy
from foredeck.store.protocol import Batch
from observations.chat import rounds, user
from observations.desk import MODE, NOTES, Time, keeper, kept, observe, observer, pick
from store.journaled import delivered, until
from tasks.test_shared_database import Machines, machines

__all__ = ["machines"]

T = TypeVar("T")


def test_a_lease_holds_on_machines_that_have_not_heard_of_it(machines: Machines) -> None:
    with closing(machines.one()) as first, closing(machines.two()) as second:
        one, two = keeper(first).lease, keeper(second, "two").lease
        seen = two.look()
        one.take("observe", one.look())
        with pytest.raises(ObservingBusy):
            two.take("observe", seen)
        with pytest.raises(ObservingBusy, match="in progress"):
            two.take("observe", two.look())


def test_what_one_machine_observed_the_other_does_not(machines: Machines) -> None:
    with closing(machines.one()) as first, closing(machines.two()) as second:
        assert observe(first) is not None
        assert patiently(lambda: observe(second, 6, owner="two")) is not None
        assert patiently(lambda: observe(second, 6, owner="two")) is None
        covered = [address for one in kept(second) for address in one.document.covers]
        assert covered == [m.address for m in [user("look at all of them"), *rounds(6)]]


def test_what_has_not_come_from_the_database_yet_is_waited_for(machines: Machines) -> None:
    with closing(machines.one()) as store:
        assert observe(store) is not None
        lease = keeper(store).lease
        document = lease.look().document
        document.newest = "observation:s:elsewhere"
        store.commit(Batch(puts=[document.seal()]))
        with pytest.raises(ObservingBusy, match="on its way"):
            observe(store, 6)
        gone = ForgottenDocument(id=forgotten_id("s"), session="s", documents=1, blobs=0)
        store.commit(Batch(puts=[gone.seal()]))
        assert observe(store, 6) is not None, "who waits for what was erased waits for ever"


def patiently(action: Callable[[], T]) -> T:
    """Again and again, as long as another machine's work is on its way."""
    for _ in range(600):
        try:
            return action()
        except ObservingBusy:
            sleep(0.1)
    return action()


def test_nobody_begins_while_the_database_is_away(machines: Machines) -> None:
    writer, asked = observer(NOTES)
    with closing(machines.cut()) as store, pytest.raises(StoreUnavailable):
        asyncio.run(keeper(store).observe(rounds(3), pick, writer, MODE))
    assert asked.questions == [], "nothing is spent"


def test_a_commit_that_was_cut_off_is_tried_again_and_done_once(machines: Machines) -> None:
    with closing(machines.one()) as store:
        document = observe(store)
        assert document is not None
        delivered(store)
        lease = keeper(store).lease
        operation = lease.take("observe", lease.look())
        delivered(store)
    again = document.model_copy(update={"id": "observation:s:x", "operation": operation})
    with closing(machines.cut()) as store, pytest.raises(StoreUnavailable):
        keeper(store).lease.commit(operation, again, {})
    with closing(machines.one()) as store:
        lease = keeper(store).lease
        lease.commit(operation, again, {})
        committed = store.latest()
        lease.commit(operation, again, {})
        assert committed is not None
        assert store.latest() == committed
        assert len(store.history("observation:s:x")) == 1


def test_a_lease_that_ended_on_one_machine_is_another_ones(machines: Machines) -> None:
    time = Time()
    with closing(machines.one()) as first, closing(machines.two()) as second:
        one, two = keeper(first, time=time).lease, keeper(second, "two", time=time).lease
        operation = one.take("observe", one.look())
        time.now += LEASE_MS
        until(lambda: two.look().document is not None)
        assert two.clear_stale().startswith("An observation was cut off")
        two.take("observe", two.look())
        with pytest.raises(ObservingBusy, match="lost"):
            one.renew(operation)

"""Tasks of several machines: the database decides who has one. While it is away, claims wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from foredeck.errors import StoreUnavailable, ToolError
from foredeck.store.protocol import Batch
from foredeck.store.store import Store
from foredeck.tasks.board import Actor
from foredeck.tasks.session import SessionTasks
from foredeck.tasks.work import TaskWork
from foredeck_xtdb.node import NodeFolder
from ports import dead_url
from store.journaled import Machine, delivered, new_namespace, server_link


class Machines:
    """Two machines with a copy each; the link of the first can be cut."""

    def __init__(self, node: NodeFolder, folder: Path, nowhere: str) -> None:
        link = server_link(node, new_namespace())
        self.one, self.two = (Machine(folder / f"{name}.db", link) for name in ("one", "two"))
        self.cut = replace(self.one, link=replace(link, url=nowhere))


@pytest.fixture
def machines(memory_node: NodeFolder, tmp_path: Path) -> Iterator[Machines]:
    with dead_url() as nowhere:
        yield Machines(memory_node, tmp_path, nowhere)


def tasks_on(store: Store, session: str) -> SessionTasks:
    return SessionTasks(TaskWork(store, "project", Actor(session)), session)


def planned(machines: Machines) -> str:
    """A task that both machines know; its id."""
    with closing(machines.one()) as store:
        tasks = tasks_on(store, "one")
        tasks.mutate.run({"action": "create", "title": "Fix the login"})
        delivered(store)
        return tasks.work.board.all()[0].id


def seen(store: Store, session: str, id: str) -> SessionTasks:
    tasks = tasks_on(store, session)
    tasks.work.board.refresh()
    assert tasks.work.board.get(id) is not None
    return tasks


def test_the_first_claim_in_the_database_wins_though_no_copy_has_heard_of_it(
    machines: Machines,
) -> None:
    id = planned(machines)
    with closing(machines.one()) as first, closing(machines.two()) as second:
        one, two = seen(first, "one", id), seen(second, "two", id)
        assert not one.work.claim(id).provisional
        # What the second machine knows is older than that claim.
        with pytest.raises(ToolError, match="Already claimed by session one"):
            two.work.claim(id)
        two.work.board.refresh()
        assert [h.fields["status"] for h in second.history(id)] == ["open", "in_progress"]


def test_what_is_claimed_is_seen_and_closed_on_the_machine_that_claimed(machines: Machines) -> None:
    id = planned(machines)
    with closing(machines.one()) as first:
        one = seen(first, "one", id)
        one.work.claim(id)
        one.work.close(id, "completed", "It redirects once.")
        delivered(first)
    with closing(machines.two()) as second:
        two = seen(second, "two", id)
        task = two.work.board.get(id)
        assert (task.status, task.session) == ("closed", "one")


def away(machines: Machines, id: str) -> str:
    """Claims on the first machine while it is cut off; what the tool says."""
    with closing(machines.cut()) as store:
        tasks = seen(store, "one", id)
        said = tasks.mutate.run({"action": "claim", "id": id})
        assert tasks.active.id() == id
        assert [head.fields["status"] for head in store.history(id)] == ["open"]
    return said


def test_a_claim_while_the_database_is_away_is_provisional_and_then_holds(
    machines: Machines,
) -> None:
    id = planned(machines)
    assert away(machines, id).startswith("Claimed provisionally")
    with closing(machines.one()) as store:
        tasks = seen(store, "one", id)
        said = tasks.query.run({"action": "ready"})
        assert said.startswith("The database is back: your provisional claim of t-")
        assert "holds" in said.splitlines()[0]
        assert "The database" not in tasks.query.run({"action": "ready"})
        assert tasks.active.id() == id


def test_it_is_lost_where_another_was_faster(machines: Machines) -> None:
    id = planned(machines)
    away(machines, id)
    with closing(machines.two()) as store:
        seen(store, "two", id).work.claim(id)
    with closing(machines.one()) as store:
        tasks = seen(store, "one", id)
        said = tasks.mutate.run({"action": "create", "title": "Another"})
        assert "is lost. Already claimed by session two" in said.splitlines()[0]
        assert tasks.active.id() is None


def test_what_a_session_holds_it_may_change_while_the_database_is_away(machines: Machines) -> None:
    id = planned(machines)
    with closing(machines.one()) as store:
        seen(store, "one", id).work.claim(id)
    with closing(machines.cut()) as store:
        tasks = seen(store, "one", id)
        close = {"action": "close", "id": id, "summary": "It redirects once."}
        for input in (close, {"action": "create", "title": "Test it"}):
            assert tasks.mutate.run(input).splitlines()[-1] == (
                "The database is away: this is kept here, and delivered when it is back."
            )
    with closing(machines.one()) as store:
        delivered(store)
    with closing(machines.two()) as store:
        board = seen(store, "two", id).work.board
        assert [(t.title, t.status) for t in board.all()] == [
            ("Fix the login", "closed"),
            ("Test it", "open"),
        ]


def test_what_another_may_claim_meanwhile_it_may_not(machines: Machines) -> None:
    id = planned(machines)
    with closing(machines.cut()) as store:
        tasks = seen(store, "one", id)
        with pytest.raises(ToolError, match="change only those that you have claimed"):
            tasks.mutate.run({"action": "update", "id": id, "priority": 0})
        with pytest.raises(StoreUnavailable):
            store.commit_for_all(Batch())


def test_a_person_is_told_to_claim_later(machines: Machines) -> None:
    id = planned(machines)
    with closing(machines.cut()) as store:
        work = TaskWork(store, "project", Actor(None, "ann"))
        work.board.refresh()
        with pytest.raises(ToolError, match="has to decide who gets a task"):
            work.claim(id)

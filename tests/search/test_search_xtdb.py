"""The index over XTDB's local copy: followed as it grows, and on a second machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from context.driver import Host
from context.scenes import ask, finish
from foredeck.config import Config
from foredeck.search.index import SearchIndex
from foredeck.xtdb.journal.link import ServerLink
from foredeck.xtdb.journal.store import JournaledStore
from foredeck.xtdb.node.folder import NodeFolder
from foredeck.xtdb.opening import open_copy
from search.sessions import Searched, Talk
from store.journaled import Machine, delivered, new_namespace, server_link, until
from store.xtdb_node import memory_node, runtime

__all__ = ["memory_node", "runtime"]


@pytest.fixture
def machines(memory_node: NodeFolder, tmp_path: Path) -> list[Machine]:
    """Two machines with empty copies of one empty namespace."""
    link = server_link(memory_node, new_namespace())
    return [Machine(tmp_path / name / "copy.db", link) for name in ("one", "two")]


class Fetching(Searched):
    """Searches as `foredeck search` does, with what other machines have written."""

    @contextmanager
    def index(self) -> Iterator[SearchIndex]:
        """See `Searched.index`."""
        assert self.store.fetch_all()
        with super().index() as index:
            yield index


def searched(machine: Machine, store: JournaledStore) -> Searched:
    return Fetching(machine.file.parent, store)


def test_the_index_follows_a_copy(machines: list[Machine]) -> None:
    one = machines[0]
    with closing(one()) as store:
        here = searched(one, store)
        talk = Talk(store, "one")
        said = talk.say(user="where does the walrus sleep")
        assert here.found("walrus") == [said]
        ran = talk.run("bash", "flamingo: command not found " * 40, failed=True, command="ls")
        file = talk.meet("/repo/zoo.py", "class Heron: pass")
        delivered(store)
        assert here.found("flamingo") == [ran]
        assert here.found("heron") == [file]


def test_a_second_machine_finds_what_the_first_has_done(machines: list[Machine]) -> None:
    one, two = machines
    with ExitStack() as opened:
        first = opened.enter_context(closing(one()))
        talk = Talk(first, "one")
        said = talk.say(user="where does the walrus sleep", assistant="on the ice " * 100)
        ran = talk.run("bash", "flamingo: command not found " * 40, failed=True, command="ls")
        file = talk.meet("/repo/zoo.py", "class Heron: pass")
        delivered(first)
        second = opened.enter_context(closing(two()))
        there = searched(two, second)
        own = Talk(second, "two").say(user="a walrus of my own")
        assert set(there.found("walrus")) == {said, own}
        assert there.found("flamingo") == [ran]
        assert there.found("heron") == [file]
        assert "on the ice" in there.find("ice").hits[0].snippet
        later = talk.say(user="the walrus has left")
        delivered(first)
        position = second.lineage()
        until(lambda: later in there.found("walrus"))
        # Whole transactions have come: the index went on, and did not begin again.
        assert second.lineage() == position


def test_while_the_database_is_away_what_is_here_is_found(machines: list[Machine]) -> None:
    one, two = machines
    with closing(one()) as first:
        talk = Talk(first, "one")
        said = talk.say(user="where does the walrus sleep")
        delivered(first)
        with closing(two()) as second:
            assert searched(two, second).found("walrus") == [said]
        talk.say(user="the walrus has left")
        delivered(first)
    assert isinstance(two.link, ServerLink)
    nobody = replace(two, link=replace(two.link, url="http://127.0.0.1:1"))
    with closing(nobody()) as second:
        own = Talk(second, "two").say(user="a walrus of my own")
        assert not second.fetch_all()
        assert set(Searched(two.file.parent, second).found("walrus")) == {said, own}


def test_memory_search_finds_what_another_machine_has_done(
    memory_node: NodeFolder, tmp_path: Path
) -> None:
    running = memory_node.running()
    assert running is not None
    settings = {
        "store": "xtdb",
        "xtdb": {
            "url": running.url,
            "token_file": memory_node.token_file,
            "namespace": new_namespace(),
        },
    }
    with ExitStack() as opened:
        one = Host(tmp_path / "one", session="first", **settings)
        opened.callback(one.close)
        ask(one, "Where does the walrus sleep?")
        finish(one, "On the ice, says walrus.py.")
        ask(one, "Thanks.")
        with closing(open_copy(Config(home=tmp_path / "one", **settings))) as copy:
            copy.start()
            delivered(copy)
        two = Host(tmp_path / "two", session="second", **settings)
        opened.callback(two.close)
        ask(two, "Find the animal.")
        told = two.tool("c1", "memory-search", query="walrus")["content"][0]["text"]
        assert "On the ice, says walrus.py." in told

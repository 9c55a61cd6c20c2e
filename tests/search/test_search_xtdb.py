"""The index over XTDB's local copy: followed as it grows, and on a second machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from context.driver import Host
from context.scenes import ask, go_on
from foredeck.config import Config
from foredeck.search.index import SearchIndex
from foredeck.store.store import Store
from foredeck_xtdb.link import ServerLink
from foredeck_xtdb.local_copy import open_copy, remote_of
from foredeck_xtdb.node import NodeFolder
from search.sessions import Searched, Talk
from store.journaled import Machine, delivered, new_namespace, server_link, until


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


def searched(machine: Machine, store: Store) -> Searched:
    return Fetching(machine.file.parent, store)


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
        assert "on the ice" in there.find("ice").hits[0].passage.text
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


@pytest.fixture
def settings(memory_node: NodeFolder) -> dict[str, Any]:
    """The configuration that selects one empty namespace, on any machine."""
    running = memory_node.running()
    xtdb = {"url": running.url, "token_file": memory_node.token_file}
    return {"store": "xtdb", "xtdb": {**xtdb, "namespace": new_namespace()}}


@pytest.fixture
def talked(tmp_path: Path, settings: dict[str, Any]) -> None:
    """A session on one machine that is over, and has arrived in XTDB."""
    home = tmp_path / "one"
    host = Host(home, session="first", **settings).begin("Where does the walrus sleep?")
    go_on(host, "Thanks.", answer="On the ice, says walrus.py.")
    host.close()
    with closing(open_copy(Config(home=home, **settings))) as copy:
        remote_of(copy).start()
        delivered(copy)


@pytest.mark.usefixtures("talked")
def test_memory_search_finds_what_another_machine_has_done(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    with closing(Host(tmp_path / "two", session="second", **settings)) as host:
        ask(host, "Find the animal.")
        told = host.tool("c1", "memory-search", query="walrus")["content"][0]["text"]
        assert "On the ice, says «walrus».py." in told

"""A fork knows what its parent knew where it left, from its first prompt on, on either store."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from context.messages import assistant, user
from foredeck.config import Config
from foredeck.context.head import compose
from foredeck.engine.engine import Engine
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.memory.keeping import Memory, NewMemory
from foredeck.memory.trust import load_user
from foredeck.memory.user_acts import UserActs
from foredeck.model.records import turn_id
from foredeck.store.portable.export import export_session
from foredeck.store.portable.importing import import_file
from foredeck.store.protocol import Batch
from foredeck.store.store import Store, open_sqlite
from store.journaled import Machine, new_namespace, server_link

START_MS = 1_777_800_000_000


@pytest.fixture(params=["sqlite", "xtdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        opened = open_sqlite(tmp_path / "memory.db")
    else:
        link = server_link(request.getfixturevalue("memory_node"), new_namespace())
        opened = Machine(tmp_path / "memory.db", link)()
    with closing(opened):
        yield opened


class Desk:
    """Sessions of one user on one store. An engine that is closed would close that, too."""

    def __init__(self, store: Store, home: Path) -> None:
        self.store, self.home = store, home
        home.mkdir()
        user = load_user(home)
        self.memory, self.acts = Memory(store, user, by="s"), UserActs(store, user, by="s")

    def engine(
        self, host: SimulatedHost, parent: str | None = None, *, head: bool = True
    ) -> Engine:
        shows = ("rules", "memory", "page") if head else ()
        settings = {"home": self.home, "head": {"tokens": 600, "shows": shows}}
        engine = Engine(Config.model_validate(settings), store=self.store)
        engine.open_session(host.opening(str(self.home), parent=parent))
        host.replace_engine()
        return engine

    def parent(self) -> SimulatedHost:
        """Four questions, each with an answer."""
        host = SimulatedHost("s")
        engine = self.engine(host)
        for number in range(1, 5):
            ask(engine, host, f"Question {number}")
            answer(host, f"Answer {number}")
        ask(engine, host, "Is that all?")
        return host

    def learn(self, fact: str, turn: int) -> str:
        learned = NewMemory("fact", fact, session="s", turn=turn_id("s", turn))
        return self.memory.add(learned).entry.id

    def known(self, session: str) -> list[tuple[str, str]]:
        kept = self.memory.of_session(session, "session")
        return [(entry.document.fact, entry.trust) for entry in reversed(kept)]


def ask(engine: Engine, host: SimulatedHost, text: str) -> str:
    """The prompt with one more message of the user's."""
    time_ms = START_MS + 1000 * len(host.messages)
    host.add(user(text, timestamp=time_ms))
    host.accept(engine.assemble(host.request(time_ms)))
    return str(host.prompt())


def answer(host: SimulatedHost, text: str) -> None:
    host.add(assistant(text, timestamp=START_MS))


def fork(of: SimulatedHost, session: str, messages: int) -> SimulatedHost:
    made = SimulatedHost(session)
    made.add(*of.messages[:messages], entries=of.entries[:messages])
    return made


@pytest.fixture
def desk(store: Store, tmp_path: Path) -> Desk:
    return Desk(store, tmp_path / "home")


def test_a_fork_has_what_was_known_where_it_left_and_each_goes_its_own_way(desk: Desk) -> None:
    parent = desk.parent()
    desk.learn("The port is 8080", 1)
    replaced = desk.learn("The queue is in memory", 2)
    later = desk.learn("The queue is on disk", 4)
    desk.acts.add(NewMemory("fact", "Tests run with make", session="s"))
    old = desk.memory.get(replaced)
    changes = {"state": "superseded", "superseded_by": later}
    desk.store.commit(Batch(puts=[old.document.model_copy(update=changes).seal()]))

    host = fork(parent, "f", 4)
    engine = desk.engine(host, "s")
    ask(engine, host, "And in the fork?")
    expected = [
        ("The port is 8080", "derived"),
        ("The queue is in memory", "derived"),
        ("Tests run with make", "user-stated"),
    ]
    assert desk.known("f") == expected
    head = compose(engine.opened.facilities.sections, 4000)
    places = [head.index(fact) for fact, _trust in reversed(expected)]
    assert places == sorted(places), "the newest first"

    desk.learn("Something new", 4)
    mine = desk.memory.of_session("f", "session")[-1]
    desk.acts.delete(mine.id)
    host.replace_engine()
    engine = desk.engine(host, "s")
    ask(engine, host, "Go on.")
    assert desk.known("f") == expected[1:], "taken over once"
    assert ("The port is 8080", "derived") in desk.known("s")
    grandchild = fork(host, "g", 4)
    engine = desk.engine(grandchild, "f")
    ask(engine, grandchild, "And here?")
    assert desk.known("g") == expected[1:], "a fork of a fork"


def test_the_head_of_a_fork_stays_as_it_went_out_until_its_source_is_deleted(desk: Desk) -> None:
    secret = desk.acts.add(NewMemory("fact", "The password is in the vault", session="s")).entry
    parent = desk.parent()
    host = fork(parent, "f", 4)
    engine = desk.engine(host, "s")
    assert "vault" in ask(engine, host, "And?")
    assert host.prompt()[:5] == parent.prompt()[:5]
    desk.acts.delete(secret.id)
    assert "vault" not in ask(engine, host, "And now?")
    assert desk.known("f") == []


def test_a_fork_whose_first_call_never_came_has_nothing_yet(desk: Desk) -> None:
    parent = desk.parent()
    desk.learn("The port is 8080", 1)
    host = fork(parent, "f", 4)
    desk.engine(host, "s")
    assert desk.store.query("memory", {"session": "f"}) == []
    engine = desk.engine(host, "s", head=False)
    assert "8080" not in ask(engine, host, "Without a head?")
    answer(host, "The port is another one.")
    ask(engine, host, "Which?")
    ask(engine, host, "Please.")
    assert desk.known("f") == [("The port is 8080", "derived")]


def test_a_forks_memory_goes_with_it_into_its_bundle(desk: Desk, tmp_path: Path) -> None:
    parent = desk.parent()
    desk.acts.add(NewMemory("fact", "Tests run with make", session="s"))
    host = fork(parent, "f", 4)
    engine = desk.engine(host, "s")
    ask(engine, host, "And?")
    text = io.StringIO()
    export_session(desk.store, "f", text.write)
    with closing(open_sqlite(tmp_path / "elsewhere.db")) as elsewhere:
        import_file(elsewhere, io.BytesIO(text.getvalue().encode()))
        (entry,) = Memory(elsewhere, load_user(desk.home)).of_session("f", "session")
    assert (entry.document.fact, entry.trust) == ("Tests run with make", "user-stated")

"""The store in front of XTDB: the contract of all stores, and what gets to XTDB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from examples import examples
from foredeck.errors import Conflict, StoreUnavailable
from foredeck.model.documents import Document
from foredeck.model.identity import sha256_hex
from foredeck.store.protocol import Batch
from foredeck.store.store import Store
from foredeck_xtdb.database.adapter import Database
from foredeck_xtdb.journal import JournalBounds, JournalFull
from foredeck_xtdb.link import ServerLink
from foredeck_xtdb.local_copy import remote_of
from foredeck_xtdb.node import NodeFolder

from .contract import CommitContract, HeadContract, VersionContract, contents, store
from .contract_origin import OriginContract
from .contract_processes import ProcessContract
from .documents import batch, file, note
from .factory import StoreFactory
from .journaled import Machine, delivered, direct, new_namespace, server_link
from .model import StoreComparison

__all__ = ["store"]

START_MS = 1_800_000_000_000
"""Later than all that is imported, so that only the clock's own jumps count."""


@pytest.fixture
def machine(memory_node: NodeFolder, tmp_path: Path) -> Machine:
    """A machine with an empty copy of an empty namespace."""
    return Machine(tmp_path / "copy.db", server_link(memory_node, new_namespace()))


@pytest.fixture
def factory(machine: Machine) -> Iterator[StoreFactory]:
    """The stores of one machine."""
    made = StoreFactory(machine)
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


def equal(one: Store, two: Store) -> None:
    """Both stores hold the same transactions with the same versions."""
    changes = [list(store.changes_since(None, limit=10**6)) for store in (one, two)]
    assert sorted(map(repr, changes[0])) == sorted(map(repr, changes[1]))
    for id in {change.id for change in changes[0]}:
        assert [head.token for head in one.history(id)] == [head.token for head in two.history(id)]
        for head in one.history(id):
            documents = [store.get(id, Document, head.token) for store in (one, two)]
            assert documents[0] is not None
            assert documents[1] is not None
            assert documents[0].model_dump() == documents[1].model_dump()


class PlannedLink(ServerLink):
    """To a server that orders no commits by itself."""

    def _open(self, timeout_ms: int) -> Database:
        database = super()._open(timeout_ms)
        database._writer._function = None
        return database


@pytest.mark.parametrize("link_type", [ServerLink, PlannedLink])
def test_whatever_is_committed_comes_back_from_xtdb(
    memory_node: NodeFolder, link_type: type[ServerLink]
) -> None:
    """A few dicts against a local copy, while the clock jumps, and at the end against what another
    machine has fetched, and what XTDB holds."""

    class Comparison(StoreComparison):
        now_ms = START_MS

        def machine(self, name: str) -> Machine:
            namespace = f"j{self.folder.name.lower().replace('_', '-')}"
            link = server_link(memory_node, namespace)
            return Machine(self.folder / name, link_type(link.url, link.token, namespace, 30_000))

        def open_store(self, folder: Path) -> Store:
            self.folder = folder
            store = self.machine("copy.db")()
            store._writer._clock = lambda: self.now_ms
            return store

        @rule(by_ms=st.sampled_from([-86_400_000, -1_000, -1, 1, 5_000, 86_400_000]))
        def move_the_clock(self, by_ms: int) -> None:
            """As a user, or a time server, does."""
            self.now_ms = max(START_MS - 10**9, self.now_ms + by_ms)

        def teardown(self) -> None:
            link = self.machine("copy.db").link
            with closing(self.machine("copy.db")()) as again, closing(direct(link)) as remote:
                delivered(again)
                assert remote_of(again).backlog.quarantined == 0
                self.store.close()
                self.store = remote.pull()
                equal(again, self.store)
                self.all_is_equal()
                with closing(self.machine("other.db")()) as other:
                    assert other.fetch_all()
                    assert other.blobs(self.model.blobs) == self.model.blobs
                    equal(other, again)
            super().teardown()

    case = Comparison.TestCase
    case.settings = settings(max_examples=examples(15), stateful_step_count=15, deadline=None)
    case("runTest").debug()


def test_two_engines_on_one_copy_deliver_once(machine: Machine) -> None:
    with closing(machine()) as one, closing(machine()) as two, closing(direct(machine.link)) as far:
        for n in range(20):
            (one if n % 2 else two).commit(batch(note("a", str(n))))
        delivered(one)
        equal(two, far)
        assert contents(far, "a") == [str(n) for n in range(20)]


class TestOtherMachines:
    """Two machines with a copy each."""

    @pytest.fixture
    def other(self, machine: Machine, tmp_path: Path) -> Machine:
        """Another machine on the same XTDB."""
        return Machine(tmp_path / "other.db", machine.link)

    def test_each_machine_has_what_the_other_wrote(self, machine: Machine, other: Machine) -> None:
        data = b"of one"
        with closing(machine()) as one:
            tokens = [
                one.commit(Batch([note("a", text, session="s")], {sha256_hex(data): data}))
                for text in ("one", "x" * 9_000)
            ]
            one.commit(batch(note("b", "other", session="t"), file("/f", "text")))
            delivered(one)
            with closing(other()) as two:
                assert contents(two, "a") == ["one", "x" * 9_000]
                assert [head.token for head in two.history("a")] == tokens
                assert [head.id for head in two.query("note", {"session": "t"})] == ["b"]
                assert two.blob(sha256_hex(data)) == data
                assert two.get(file("/f").id, Document).content == "text"
                assert [origin.token for origin in two.transactions(tokens)] == tokens

    def test_texts_that_only_another_machine_needs_too_are_known(
        self, machine: Machine, other: Machine
    ) -> None:
        shared, own = "shared " * 400, "own " * 400
        with closing(machine()) as one:
            one.commit(batch(note("a", shared), note("b", own)))
            delivered(one)
        with closing(other()) as two:
            two.commit(batch(note("c", shared)))
            delivered(two)
        with closing(machine()) as one:
            digests = [sha256_hex(text.encode()) for text in (shared, own)]
            assert one.needed(digests, {"a", "b"})[0] == {digests[0]}
            assert one.needed(digests, {"a", "b", "c"})[0] == set()

    def test_both_write_the_same_object(self, machine: Machine, other: Machine) -> None:
        with closing(machine()) as one, closing(other()) as two:
            for n in range(6):
                (one if n % 2 else two).commit(batch(note("a", str(n))))
            delivered(one)
            delivered(two)
            with closing(direct(machine.link)) as remote:
                expected = contents(remote, "a")
            assert sorted(expected) == [str(n) for n in range(6)]
        with closing(machine()) as one, closing(other()) as two:
            assert contents(one, "a") == expected
            assert contents(two, "a") == expected

    def test_the_later_of_two_racing_writers_gets_a_conflict(
        self, machine: Machine, other: Machine
    ) -> None:
        with closing(machine()) as one:
            one.commit(batch(note("a", "first"), expect={"a": None}))
            delivered(one)
        with closing(other()) as two, pytest.raises(Conflict):
            two.commit(batch(note("a", "second"), expect={"a": None}))

    def test_what_only_another_machine_has_is_not_reported_as_absent(
        self, machine: Machine, other: Machine, memory_node: NodeFolder
    ) -> None:
        with closing(machine()) as one:
            one.commit(batch(note("a")))
            delivered(one)
        with closing(other()) as two:
            assert two.head("never") is None
        away = Machine(other.file, server_link(memory_node, machine.link.namespace))
        object.__setattr__(away.link, "url", "http://127.0.0.1:9")
        with closing(away()) as two:
            with pytest.raises(StoreUnavailable, match="another machine has written it"):
                two.head("a")
            assert two.head("never") is None
            assert two.query("note") == []


def test_a_full_journal_refuses_commits_with_a_message(
    memory_node: NodeFolder, tmp_path: Path
) -> None:
    link = server_link(memory_node, new_namespace())
    object.__setattr__(link, "url", "http://127.0.0.1:9")
    for bounds in (JournalBounds(2, 10**6), JournalBounds(100, 2_000)):
        machine = Machine(tmp_path / f"{bounds.entries}.db", link, bounds)
        with closing(machine()) as store:
            for n in range(2):
                store.commit(batch(note("a", f"{n}" * 800)))
            with pytest.raises(JournalFull, match="wait for XTDB"):
                store.commit(batch(note("a", "2" * 800)))
            assert contents(store, "a") == ["0" * 800, "1" * 800]
            assert remote_of(store).backlog.entries == 2


def test_a_wrong_token_is_reported_at_once(machine: Machine) -> None:
    object.__setattr__(machine.link, "token", "wrong")
    with pytest.raises(StoreUnavailable, match="does not accept the token"):
        machine()

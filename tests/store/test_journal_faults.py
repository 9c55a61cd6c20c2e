"""What goes wrong around the local copy: the node, the network, the engine, the file."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from foredeck.config import Config
from foredeck.errors import StoreDamaged
from foredeck.store.location import inode_of
from foredeck.store.place import open_beside, open_store
from foredeck.store.protocol import Token, silent
from foredeck.store.store import Store, open_sqlite
from foredeck_xtdb.database.adapter import Database
from foredeck_xtdb.journal import read_backlog
from foredeck_xtdb.link import OwnLink, ServerLink, copy_file
from foredeck_xtdb.local_copy import open_copy, remote_of
from foredeck_xtdb.node import NodeFolder, own_node_folder, private_node, start, stop
from foredeck_xtdb.runtime import Runtime
from ports import dead_url, unused_port

from .contract import contents
from .documents import batch, file, note
from .flaky_proxy import FlakyProxy, flaky_proxy
from .journaled import Machine, Told, delivered, direct, new_namespace, own_link, server_link, until
from .pulled import Pulled
from .test_journal import equal
from .test_xtdb_faults import port_of

SPAWN = multiprocessing.get_context("spawn")


def commit(store: Store, *numbers: int) -> list[Token]:
    """One transaction for each number, with a document of its own and a shared one."""
    return [store.commit(batch(note(f"n {n}", f"{n} " * 400), note("a", str(n)))) for n in numbers]


def check(remote: Pulled, tokens: list[Token]) -> None:
    """XTDB has these transactions, each once, in this order, and nothing else."""
    assert [head.token for head in remote.history("a")] == tokens
    assert contents(remote, "a") == [str(n) for n in range(len(tokens))]
    assert len(remote.changes_since(None, limit=10**6)) == 2 * len(tokens)


def kill(folder: NodeFolder, sign: signal.Signals = signal.SIGKILL) -> int:
    """Send a signal to the node; its process id."""
    node = folder.running()
    os.kill(node.pid, sign)
    return node.pid


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address where nobody answers."""
    with dead_url() as url:
        yield url


@pytest.fixture
def own_home(runtime: Runtime, tmp_path: Path) -> Iterator[Path]:
    """A state folder in which the node is installed, which is stopped at the end."""
    (tmp_path / "xtdb").mkdir()
    (tmp_path / "xtdb" / runtime.folder.name).symlink_to(runtime.folder)
    yield tmp_path
    stop(own_node_folder(tmp_path))


class TestOwnNode:
    """A node with data that last, looked after by the store."""

    def test_a_node_that_is_killed_under_load_is_started_again(self, own_home: Path) -> None:
        told = Told()
        machine = Machine(own_home / "copy.db", own_link(own_home, notify=told))
        folder = own_node_folder(own_home)
        with closing(machine(told)) as store:
            tokens = commit(store, *range(5))
            delivered(store)
            tokens += commit(store, *range(5, 30))
            pid = kill(folder)
            tokens += commit(store, *range(30, 40))
            delivered(store)
            assert folder.running().pid != pid
            assert str(folder.log_file) in told.wait("was started again")
            with closing(Pulled(machine.link.connect())) as remote:
                check(remote, tokens)
                equal(store, remote)

    def test_a_hanging_node_blocks_nobody(self, own_home: Path) -> None:
        told = Told()
        machine = Machine(own_home / "copy.db", own_link(own_home, timeout_ms=1_000))
        folder = own_node_folder(own_home)
        with closing(machine(told)) as store:
            tokens = commit(store, *range(5))
            delivered(store)
            tokens += commit(store, *range(5, 15))
            kill(folder, signal.SIGSTOP)
            try:
                tokens += commit(store, *range(15, 25))
                assert contents(store, "a") == [str(n) for n in range(25)]
                told.wait("transactions wait for XTDB")
                assert remote_of(store).backlog.entries >= 10
                assert store.trouble == f"XTDB away, {remote_of(store).backlog.entries} wait"
            finally:
                kill(folder, signal.SIGCONT)
            told.wait("answers again")
            delivered(store)
            with closing(Pulled(machine.link.connect())) as remote:
                check(remote, tokens)

    def test_a_node_that_the_user_stops_stays_stopped_until_it_is_started(
        self, own_home: Path, runtime: Runtime
    ) -> None:
        told = Told()
        machine = Machine(own_home / "copy.db", own_link(own_home))
        folder = own_node_folder(own_home)
        with closing(machine(told)) as store:
            tokens = commit(store, 0)
            delivered(store)
            folder.mark_stopped(True)
            stop(folder)
            tokens += commit(store, 1)
            told.wait("foredeck xtdb down")
            assert folder.running() is None
            start(folder, runtime)
            delivered(store)
            with closing(Pulled(machine.link.connect())) as remote:
                check(remote, tokens)

    def test_a_node_that_stops_indexing_is_started_again(self, own_home: Path) -> None:
        told = Told()
        folder = own_node_folder(own_home)
        link = _Behind(own_home, told)
        with closing(Machine(own_home / "copy.db", link)(told)) as store:
            tokens = commit(store, 0)
            delivered(store)
            pid = kill(folder, signal.SIGCONT)
            link.proxy.altered = b'"ingesterFailed?":false', b'"ingesterFailed?": true'
            told.wait("could not index its log")
            until(lambda: (node := folder.running()) is not None and node.pid != pid)
            tokens += commit(store, 1)
            delivered(store)
            with closing(Pulled(own_link(own_home).connect())) as remote:
                check(remote, tokens)


class _Behind(OwnLink):
    """The first connection goes through a proxy."""

    def __init__(self, home: Path, notify: Told) -> None:
        super().__init__(home, "rocksdb", "foredeck", 30_000, notify)
        self.proxy: FlakyProxy | None = None

    def _open(self, url: str, timeout_ms: int) -> Database:
        if self.proxy is None:
            self.proxy = FlakyProxy(int(url.rpartition(":")[2]))
            url = self.proxy.url
        return super()._open(url, timeout_ms)


def test_xtdb_may_be_away_when_the_engine_starts(runtime: Runtime, tmp_path: Path) -> None:
    port = unused_port()
    folder = NodeFolder(tmp_path / "node")
    link = ServerLink(f"http://127.0.0.1:{port}", folder.token(), "foredeck", 30_000)
    machine = Machine(tmp_path / "copy.db", link)
    with closing(machine()) as store:
        tokens = commit(store, 0, 1)
    with closing(machine()) as store:
        assert contents(store, "a") == ["0", "1"]
        tokens += commit(store, 2)
        try:
            start(folder, runtime, topology="memory", port=port)
            delivered(store)
            with closing(direct(link)) as remote:
                check(remote, tokens)
        finally:
            stop(folder)


@pytest.mark.parametrize("of", [b"submit-tx", b"tx-committed"])
def test_lost_answers_duplicate_nothing(memory_node: NodeFolder, tmp_path: Path, of: bytes) -> None:
    link = server_link(memory_node, new_namespace())
    with flaky_proxy(port_of(memory_node), of, plain=of != b"submit-tx") as proxy:
        through = ServerLink(proxy.url, link.token, link.namespace, 5_000)
        with closing(Machine(tmp_path / "copy.db", through)()) as store:
            tokens = commit(store, 0)
            delivered(store)
            proxy.drop = 7
            tokens += commit(store, *range(1, 12))
            delivered(store)
            assert proxy.dropped == 7
    with closing(direct(link)) as remote:
        check(remote, tokens)


def test_a_node_that_has_lost_everything_is_sent_it_again(runtime: Runtime, tmp_path: Path) -> None:
    port = unused_port()
    folder = NodeFolder(tmp_path / "node")
    try:
        start(folder, runtime, topology="memory", port=port)
        link = server_link(folder, "foredeck")
        with closing(Machine(tmp_path / "copy.db", link)()) as store:
            tokens = commit(store, 0, 1, 2)
            delivered(store)
            stop(folder)
            tokens += commit(store, 3)
            start(folder, runtime, topology="memory", port=port)
            delivered(store)
            with closing(direct(link)) as remote:
                until(lambda: len(remote.history("a")) == 4)
                check(remote, tokens)
                equal(store, remote)
    finally:
        stop(folder)


def commit_away(machine: Machine, numbers: range, told: Connection) -> None:
    """Commit, tell of each, and wait to be killed."""
    store = machine()
    for n in numbers:
        told.send(commit(store, n)[0])
    told.send(None)
    told.recv()


def test_the_next_engine_delivers_what_a_killed_one_left(
    memory_node: NodeFolder, tmp_path: Path, nowhere: str
) -> None:
    link = server_link(memory_node, new_namespace())
    away = Machine(
        tmp_path / "copy.db", ServerLink(nowhere, link.token, link.namespace, link.timeout_ms)
    )
    tokens: list[Token] = []
    for numbers in (range(5), range(5, 9)):
        ours, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=commit_away, args=(away, numbers, theirs))
        process.start()
        try:
            while (token := ours.recv()) is not None:
                tokens.append(token)
        finally:
            process.kill()
            process.join()
    with closing(Machine(away.file, link)()) as store:
        assert [head.token for head in store.history("a")] == tokens
        delivered(store)
        with closing(direct(link)) as remote:
            check(remote, tokens)
            equal(store, remote)


def test_the_delivering_engine_may_be_killed(memory_node: NodeFolder, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "copy.db", server_link(memory_node, new_namespace()))
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=commit_away, args=(machine, range(60), theirs))
    process.start()
    tokens = [ours.recv() for _ in range(30)]
    with closing(machine()) as store:
        process.kill()
        process.join()
        while ours.poll() and (token := ours.recv()) is not None:
            tokens.append(token)
        delivered(store)
        with closing(direct(machine.link)) as remote:
            # The very last may have been committed without being told of.
            there = [head.token for head in remote.history("a")]
            assert there[: len(tokens)] == tokens
            assert len(there) <= len(tokens) + 1
            check(remote, there)


def test_a_refused_transaction_is_quarantined_and_blocks_nothing(
    memory_node: NodeFolder, tmp_path: Path, nowhere: str
) -> None:
    link = server_link(memory_node, new_namespace())
    path = tmp_path / "copy.db"
    with closing(
        Machine(path, ServerLink(nowhere, link.token, link.namespace, link.timeout_ms))()
    ) as store:
        store.commit(batch(note(file("/f").id)))
        tokens = commit(store, 0, 1)
    with closing(direct(link)) as remote:
        remote.commit(batch(file("/f")))
        told = Told()
        with closing(Machine(path, link)(told)) as store:
            delivered(store)
            assert remote_of(store).backlog.quarantined == 1
            assert store.trouble == "XTDB refused 1"
            assert "is a file here" in (remote_of(store).backlog.reason or "")
            told.wait("has refused a transaction")
            assert [head.token for head in remote.history("a")] == tokens


def test_a_torn_end_of_the_file_loses_nothing_that_was_acknowledged(
    tmp_path: Path, nowhere: str
) -> None:
    link = ServerLink(nowhere, None, "foredeck", 1_000)
    path = tmp_path / "copy.db"
    log = path.with_name("copy.db-wal")
    with closing(Machine(path, link)()) as store:
        tokens = commit(store, 0, 1)
        before = log.stat().st_size
        tokens += commit(store, 2)
        after = log.stat().st_size
        data, whole = path.read_bytes(), log.read_bytes()
    assert before < after == len(whole)
    frame = 4096 + 24
    # Every byte of the last frame's header, the ends of all others, and some in between.
    cuts = {*range(after - frame, after - frame + 25), *range(before, after, frame), after - 1}
    cuts |= set(range(before, after, 487))
    for cut in [*sorted(cuts), after]:
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / "copy.db").write_bytes(data)
        (folder / "copy.db-wal").write_bytes(whole[:cut])
        expected = tokens if cut == after else tokens[:2]
        with closing(open_sqlite(folder / "copy.db")) as copy:
            assert [head.token for head in copy.history("a")] == expected, cut
            assert contents(copy, "a") == [str(n) for n in range(len(expected))]
            assert read_backlog(copy.path).entries == len(expected)


def test_the_copy_is_for_this_user_alone(tmp_path: Path, nowhere: str) -> None:
    path = tmp_path / "copies" / "copy.db"
    with closing(Machine(path, ServerLink(nowhere, None, "foredeck", 1_000))()) as store:
        commit(store, 0)
        assert path.parent.stat().st_mode & 0o777 == 0o700
        for made in path.parent.iterdir():
            assert made.stat().st_mode & 0o777 == 0o600, made


def test_a_damaged_copy_is_quarantined_and_rebuilt_from_xtdb(
    tmp_path: Path, runtime: Runtime
) -> None:
    with private_node(tmp_path / "node", runtime) as node:
        xtdb = {"url": node.running().url, "token_file": node.token_file, "timeout_ms": 30_000}
        config = Config.model_validate({"home": tmp_path / "home", "store": "xtdb", "xtdb": xtdb})
        with closing(open_copy(config)) as store:
            tokens = commit(store, 0, 1)
            delivered(store)
        file = copy_file(config)
        file.write_bytes(b"no database" * 1000)
        with pytest.raises(StoreDamaged) as caught:
            open_store(config)
        again, text = open_beside(config, caught.value, inode_of(file), notify=silent)
        with closing(again):
            assert [head.token for head in again.history("a")] == tokens
        assert "copy is made from what XTDB has" in text
        (aside,) = (path for path in file.parent.glob("*.damaged-*") if "-wal" not in path.name)
        assert aside.read_bytes().startswith(b"no database")

"""The SQLite store's file: how it is made, and what happens when something is wrong with it."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from foredeck.errors import Corrupt, Missing, StoreUnavailable
from foredeck.model.documents import Document
from foredeck.model.messages import put_blob
from foredeck.store.protocol import Batch
from foredeck.store.sqlite.rows import lookup_statement
from foredeck.store.store import Store, open_sqlite
from foredeck.store.versions import SCHEMA

from .documents import batch, note

SPAWN = multiprocessing.get_context("spawn")
LONG = "a long text that goes into a blob of its own, since it is long\n" * 40


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a store is to be made."""
    return tmp_path / "home" / "state" / "foredeck.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """An open store with one short and one long document."""
    with closing(open_sqlite(path)) as store:
        store.commit(batch(note("short", "text"), note("long", LONG)))
        yield store


def mode(path: Path) -> int:
    """Permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


class TestMaking:
    """Permissions, reopening, settings."""

    def test_private_from_the_first_byte(self, path: Path, store: Store) -> None:
        assert mode(path) == 0o600
        assert mode(path.parent) == mode(path.parent.parent) == 0o700
        for beside in (f"{path}-wal", f"{path}-shm"):
            assert mode(Path(beside)) == 0o600
        assert store.path == path

    def test_a_folder_that_exists_is_left_alone(self, tmp_path: Path) -> None:
        folder = tmp_path / "shared"
        folder.mkdir()
        folder.chmod(0o755)
        open_sqlite(folder / "foredeck.db").close()
        assert mode(folder) == 0o755

    @pytest.mark.parametrize("name", ["with space.db", "100%.db", "a?mode=ro.db", "ü#.db"])
    def test_awkward_names(self, tmp_path: Path, name: str) -> None:
        open_sqlite(str(tmp_path / name)).close()
        assert [entry.name for entry in tmp_path.iterdir()] == [name]

    def test_tokens_carry_the_id_of_their_store(self, tmp_path: Path) -> None:
        names = set()
        for name in ("one", "two"):
            with closing(open_sqlite(tmp_path / name)) as store:
                tokens = [store.commit(batch(note("a", str(n)))) for n in range(3)]
            first, _, number = tokens[0].partition("-")
            assert tokens == [f"{first}-{n}" for n in range(1, 4)]
            assert (len(first), number) == (8, "1")
            names.add(first)
        assert len(names) == 2

    def test_a_clock_that_steps_back(self, path: Path) -> None:
        times = iter([5_000, 4_000, 3_000, 9_000])
        with closing(open_sqlite(path, clock=lambda: next(times))) as store:
            for n in range(4):
                store.commit(batch(note("a", str(n))))
            assert [head.time_ms for head in store.history("a")] == [5_000, 5_001, 5_002, 9_000]
            newest = store.get("a", Document)
        assert newest.content == "3"

    def test_many_processes_make_one_file(self, path: Path) -> None:
        script = (
            "import sys; from foredeck.store.store import open_sqlite\n"
            "sys.stdin.readline()\n"
            "open_sqlite(sys.argv[1], busy_timeout_ms=30_000).close()"
        )
        command = [sys.executable, "-c", script, str(path)]
        processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(6)
        ]
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        for process in processes:
            _, errors = process.communicate(timeout=60)
            assert (process.returncode, errors) == (0, "")
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("SELECT count(*) FROM meta").fetchone() == (1,)


class TestRefusing:
    """Files that are no store, or cannot be used."""

    def refuse(self, path: Path, match: str) -> None:
        """The error names the file and says what is wrong."""
        with pytest.raises(StoreUnavailable, match=match) as caught:
            open_sqlite(path)
        assert str(path) in str(caught.value)

    @pytest.mark.parametrize(
        ("schema", "match"),
        [
            (SCHEMA + 1, "newer foredeck.*upgrade"),
            (1, "before 0.1.0.*move it away to start afresh"),
        ],
    )
    def test_another_schema(self, path: Path, schema: int, match: str) -> None:
        open_sqlite(path).close()
        with closing(sqlite3.connect(path)) as db:
            db.execute(f"PRAGMA user_version = {schema}")
        before = path.read_bytes()
        self.refuse(path, match)
        assert path.read_bytes() == before

    def test_a_file_that_was_cut_off(self, path: Path) -> None:
        with closing(open_sqlite(path)) as store:
            for n in range(50):
                store.commit(batch(note(f"n{n}", LONG + str(n))))
        path.write_bytes(path.read_bytes()[:6_000])
        with pytest.raises(StoreUnavailable, match="damaged") as caught:
            _read_all(path)
        assert str(path) in str(caught.value)

    def test_a_folder_in_its_place(self, tmp_path: Path) -> None:
        self.refuse(tmp_path, "cannot be")

    def test_a_file_where_the_folder_should_be(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        self.refuse(tmp_path / "file" / "foredeck.db", "cannot be opened")

    def test_a_folder_that_cannot_be_written(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            folder.chmod(0o555)
            error = _in_child(_open_unprivileged, folder / "foredeck.db")
            assert "cannot be opened" in error
            assert "permissions" in error

    def test_a_file_that_cannot_be_written(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "foredeck.db"
            open_sqlite(path).close()
            Path(name).chmod(0o555)
            path.chmod(0o444)
            error = _in_child(_open_unprivileged, path)
            assert "permissions" in error or "writable" in error
            Path(name).chmod(0o755)

    def test_a_closed_store(self, store: Store) -> None:
        store.close()
        store.close()
        for use in (store.latest, lambda: store.head("short"), lambda: store.commit(Batch())):
            with pytest.raises(StoreUnavailable, match="closed"):
                use()


class TestTrouble:
    """Busy, full, damaged in part."""

    def test_busy_names_who_holds_it(self, path: Path, store: Store) -> None:
        ours, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=_hold, args=(path, theirs))
        process.start()
        assert ours.poll(60)
        ours.recv()
        with closing(open_sqlite(path, busy_timeout_ms=20)) as other:
            with pytest.raises(StoreUnavailable, match=f"busy for 20 ms.*{process.pid}") as caught:
                other.commit(batch(note("a")))
            assert str(path) in str(caught.value)
            assert other.head("short") is not None
        ours.send("go")
        process.join(60)
        store.commit(batch(note("a")))

    def test_a_full_disk_leaves_nothing_half(self, path: Path) -> None:
        with closing(open_sqlite(path)) as store:
            before = store.commit(batch(note("a", "before")))
        error = _in_child(_fill, path)
        assert "disk" in error
        assert str(path) in error
        with closing(open_sqlite(path)) as store:
            assert store.latest() == before
            assert store.head("big") is None
            store.commit(batch(note("a", "after")))
            assert len(store.history("a")) == 2

    @pytest.mark.parametrize("id", ["short", "long"])
    @pytest.mark.parametrize("column", ["body", "content_hash", "text_hash", "view_hash"])
    def test_changed_bytes_of_a_version(
        self, path: Path, store: Store, id: str, column: str
    ) -> None:
        where = f"document = (SELECT number FROM document WHERE id = '{id}')"
        for change in _damages(path, "version", column, where):
            change()
            with pytest.raises((Corrupt, Missing)):
                store.get(id, Document)
        assert store.get("short" if id == "long" else "long", Document) is not None

    def test_changed_bytes_of_a_blob(self, path: Path, store: Store) -> None:
        blobs: dict[str, bytes] = {}
        digest = put_blob(LONG.encode(), blobs)
        for column in ("data", "size", "encoding"):
            for change in _damages(path, "blob", column, "1"):
                change()
                with pytest.raises(Corrupt, match=digest):
                    store.blob(digest)
                with pytest.raises(Corrupt, match=digest):
                    store.get("long", Document)

    def test_a_lost_blob(self, path: Path, store: Store) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("DELETE FROM blob")
            db.commit()
        with pytest.raises(Missing):
            store.get("long", Document)
        assert store.head("long") is not None

    def test_a_head_tells_of_damaged_fields(self, path: Path, store: Store) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE version SET body = x'02ffff'")
            db.commit()
        head = store.head("short")
        with pytest.raises(Corrupt, match="short"):
            head.fields["nickname"]


class TestEncoding:
    """The file format."""

    def test_queries_go_by_the_index(self, store: Store) -> None:
        for keys in (1, 3):
            plan = f"EXPLAIN QUERY PLAN {lookup_statement(keys)}"
            steps = [row[3] for row in store.db.execute(plan, [b""] * keys)]
            assert all(step.startswith("SEARCH") for step in steps)
            assert "l0" in steps[0]


def _read_all(path: Path) -> None:
    with closing(open_sqlite(path)) as store:
        for n in range(50):
            store.get(f"n{n}", Document)


def _damages(path: Path, table: str, column: str, where: str) -> Iterator[Callable[[], None]]:
    """Ways to damage one value, each undone before the next."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        (good,) = db.execute(f"SELECT {column} FROM {table} WHERE {where}").fetchone()
        if isinstance(good, int):
            wrong: list[object] = [good - 1, 77]
        else:
            middle = len(good) // 2
            flipped = bytes([good[middle] ^ 1])
            wrong = [b"", good[:-1], good[:middle] + flipped + good[middle + 1 :], b"\xff" * 40]
        for value in wrong:
            yield lambda value=value: db.execute(  # type: ignore[misc]
                f"UPDATE {table} SET {column} = ? WHERE {where}", (value,)
            )
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (good,))


def _hold(path: Path, pipe: Connection) -> None:
    """Hold the write lock until told otherwise."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        pipe.send("held")
        pipe.recv()
        db.execute("ROLLBACK")


def _in_child(target: Callable[[Path, Connection], None], path: Path) -> str:
    """Run a function that changes its whole process; what it sends."""
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=target, args=(path, theirs))
    process.start()
    theirs.close()
    assert ours.poll(60)
    said = str(ours.recv())
    process.join(60)
    return said


def _open_unprivileged(path: Path, pipe: Connection) -> None:
    if os.geteuid() == 0:
        path.parent.chmod(path.parent.stat().st_mode | 0o555)
        os.setuid(65_534)
    try:
        with closing(open_sqlite(path)) as store:
            store.commit(batch(note("a")))
        pipe.send("opened")
    except StoreUnavailable as error:
        pipe.send(str(error))


def _fill(path: Path, pipe: Connection) -> None:
    """Write more than the process may; the limit on file sizes stands for a disk's end."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with closing(open_sqlite(path)) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
        blobs: dict[str, bytes] = {}
        put_blob(os.urandom(900_000), blobs)
        try:
            store.commit(Batch(puts=[note("big"), note("a", "half")], blobs=blobs))
            pipe.send("written")
        except StoreUnavailable as error:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            pipe.send(str(error))

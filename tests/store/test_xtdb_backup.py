"""Backup of a store in XTDB while others write, and restoring it: every object and version."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from foredeck.config import Config, load_config
from foredeck.errors import Corrupt, StoreUnavailable
from foredeck.store.backup import opened_backup
from foredeck.store.copying import compare
from foredeck.store.protocol import Token
from foredeck_xtdb.link import open_database
from foredeck_xtdb.maintenance import back_up, restore
from foredeck_xtdb.node import own_node_folder, stop
from foredeck_xtdb.place import XtdbPlace
from foredeck_xtdb.runtime import Runtime

from .being_written import being_written
from .documents import batch, note


def ignore(_steps: int, _what: str) -> None:
    """Nobody looks at the progress."""


@contextmanager
def state_folder(home: Path, runtime: Runtime, *flags: str) -> Iterator[Config]:
    """A state folder with an installed node, which is stopped at the end."""
    (home / "xtdb").mkdir(parents=True)
    (home / "xtdb" / runtime.folder.name).symlink_to(runtime.folder)
    patient = ("store=xtdb", "xtdb.timeout_ms=60000", *flags)
    resolved = load_config(environ={"FOREDECK_HOME": str(home)}, flags=patient, constants=True)
    try:
        yield resolved.config
    finally:
        stop(own_node_folder(home))


def test_a_backup_under_load_has_everything_that_was_acknowledged(
    runtime: Runtime, tmp_path: Path
) -> None:
    target = tmp_path / "backup.db"
    with state_folder(tmp_path / "live", runtime) as live:
        # Not as fast as it can: a backup on a busy machine would never see the end.
        with being_written(partial(open_database, live), 10, 0.05) as (tokens, wait):
            wait()
            before = list(tokens)
            made = back_up(live, target, ignore, verify=True)
            wait()
        assert made.verified
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        assert len(before) <= made.counts["transaction"] < len(tokens)
        with closing(open_database(live)) as original, opened_backup(target) as backup:
            assert compare(original, backup).equal
    with state_folder(tmp_path / "fresh", runtime) as fresh:
        restored = restore(fresh, target, ignore)
        assert (restored.counts, restored.kept) == (made.counts, None)
        with closing(open_database(fresh)) as copy, opened_backup(target) as backup:
            found = compare(copy, backup)
            assert found.equal, found.differs
            assert found.copy.blobs > 0
            assert len(copy.transactions(before)) == len(before)
            later = copy.commit(batch(note("n0", "goes on")))
            assert copy.latest() == later
    assert not list(tmp_path.glob("*/backup-*"))


@pytest.fixture(scope="module")
def small(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Token]:
    """A backup of two transactions, and the token of the last."""
    folder = tmp_path_factory.mktemp("small")
    with state_folder(folder / "home", runtime) as config:
        with closing(open_database(config)) as store:
            store.commit(batch(note("a", "text " * 1_000)))
            token = store.commit(batch(note("b", "more")))
        back_up(config, folder / "backup.db", ignore, verify=False)
    return folder / "backup.db", token


def test_what_is_there_is_refused(
    small: tuple[Path, Token], runtime: Runtime, tmp_path: Path
) -> None:
    with state_folder(tmp_path / "home", runtime) as config:
        with closing(open_database(config)) as store:
            mine = store.commit(batch(note("mine", "mine")))
        data = own_node_folder(config.home).data
        with pytest.raises(StoreUnavailable, match=rf"`foredeck xtdb down`, move {data} away"):
            restore(config, small[0], ignore)
        with closing(open_database(config)) as store:
            assert store.latest() == mine
        stop(own_node_folder(config.home))
        data.rename(tmp_path / "before")
        restore(config, small[0], ignore)
        with closing(open_database(config)) as store:
            assert store.latest() == small[1]
            assert not store.history("mine")


def test_a_restore_that_was_interrupted_is_finished_by_the_next(
    small: tuple[Path, Token], runtime: Runtime, tmp_path: Path
) -> None:
    class Stopped(BaseException):
        """The process ends here."""

    def stop_at_once(_steps: int, what: str) -> None:
        if what == "copying":
            raise Stopped

    with state_folder(tmp_path / "home", runtime) as config:
        with pytest.raises(Stopped):
            restore(config, small[0], stop_at_once)
        with closing(open_database(config)) as store:
            assert store.latest() not in (None, small[1])
        restore(config, small[0], ignore)
        with closing(open_database(config)) as store:
            assert store.latest() == small[1]


def test_a_node_in_memory_is_restored_and_backed_up_too(
    small: tuple[Path, Token], runtime: Runtime, tmp_path: Path
) -> None:
    with state_folder(tmp_path / "home", runtime, "xtdb.topology=memory") as config:
        with pytest.raises(StoreUnavailable, match=r"name another xtdb\.namespace"):
            XtdbPlace(config).restore(small[0], ignore, force=True)
        restore(config, small[0], ignore)
        made = back_up(config, tmp_path / "again.db", ignore, verify=True)
        with opened_backup(small[0]) as one, opened_backup(tmp_path / "again.db") as other:
            assert compare(one, other).equal
        assert made.counts["transaction"] == 2


def test_nothing_to_back_up_is_reported(runtime: Runtime, tmp_path: Path) -> None:
    with (
        state_folder(tmp_path / "home", runtime) as config,
        pytest.raises(StoreUnavailable, match="nothing to back up"),
    ):
        back_up(config, tmp_path / "backup.db", ignore, verify=False)
    assert not (tmp_path / "backup.db").exists()


def _torn(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _altered(data: bytes) -> bytes:
    """With a page of a table overwritten."""
    return data[:8192] + b"\x5a" * 4096 + data[12288:]


@pytest.mark.parametrize("damage", [_torn, _altered, lambda _: b"", lambda _: b"no database " * 99])
def test_a_damaged_backup_changes_nothing(
    small: tuple[Path, Token], runtime: Runtime, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    bad = tmp_path / "bad.db"
    bad.write_bytes(damage(small[0].read_bytes()))
    with state_folder(tmp_path / "home", runtime) as config:
        folder = own_node_folder(config.home)
        folder.data.mkdir(parents=True)
        (folder.data / "mine").write_text("mine")
        with pytest.raises((Corrupt, StoreUnavailable)):
            restore(config, bad, ignore)
        assert [path.name for path in folder.data.iterdir()] == ["mine"]
        assert not list(config.home.glob("backup-*"))


def test_any_sqlite_opens_it(small: tuple[Path, Token]) -> None:
    with closing(sqlite3.connect(f"{small[0].as_uri()}?mode=ro", uri=True)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("SELECT count(*) FROM tx").fetchone() == (2,)

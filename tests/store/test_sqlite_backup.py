"""Backup of the SQLite store while others write to it, and restoring it."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from commands import Foredeck
from foredeck.errors import Corrupt, ForedeckError, StoreUnavailable
from foredeck.memory.trust import load_user
from foredeck.store.backup import back_up, contents_of, opened_backup, restore
from foredeck.store.copying import compare
from foredeck.store.protocol import Token
from foredeck.store.store import open_sqlite

from .being_written import being_written
from .documents import batch, note

HOLDER = """
import sys
from foredeck.store.store import open_sqlite
store = open_sqlite(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


def ignore(_steps: int, _what: str) -> None:
    """Nobody looks at the progress."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder with a store of three transactions."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("FOREDECK_HOME", str(folder))
    with closing(open_sqlite(folder / "foredeck.db")) as store:
        for n in range(3):
            store.commit(batch(note("a", f"{n} " * 900), note(f"n{n}")))
    return folder


def latest(file: Path) -> Token | None:
    with closing(open_sqlite(file)) as store:
        return store.latest()


def test_a_backup_beside_a_writer_has_all_that_was_acknowledged(home: Path, tmp_path: Path) -> None:
    target, steps = tmp_path / "backup.db", []
    writer = partial(open_sqlite, home / "foredeck.db", busy_timeout_ms=30_000)
    with being_written(writer, 20) as (tokens, wait):
        wait()
        before = list(tokens)

        def report(_steps: int, what: str) -> None:
            steps.append(what)
            wait()  # the writer is faster than the backup

        contents = back_up(home / "foredeck.db", target, report)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [name for name in tmp_path.iterdir() if name.name.startswith((".", "backup.db-"))] == []
    assert any(what.endswith(" pages") for what in steps)
    with opened_backup(target) as copy, closing(open_sqlite(home / "foredeck.db")) as store:
        found = compare(store, copy)
        assert found.equal, found.differs
        assert copy.transactions(before)[-1].token == before[-1]
        assert len(before) + 3 <= contents.counts["transaction"] < len(tokens) + 3
    assert not target.with_name("backup.db-wal").exists()


def test_the_store_goes_on_from_a_restored_backup(home: Path, tmp_path: Path) -> None:
    store, target = home / "foredeck.db", tmp_path / "backup.db"
    back_up(store, target, ignore)
    saved = latest(store)
    with closing(open_sqlite(store)) as opened:
        lost = opened.commit(batch(note("a", "later")))
    with pytest.raises(StoreUnavailable, match="--force"):
        restore(target, store, force=False, report=ignore)
    assert latest(store) == lost
    kept = restore(target, store, force=True, report=ignore)
    assert kept is not None
    assert latest(kept) == lost
    assert latest(store) == saved
    with closing(open_sqlite(store)) as opened:
        anew = opened.commit(batch(note("a", "another")))
    # Somebody may still hold the token of what is no longer there.
    assert anew != lost
    assert stat.S_IMODE(store.stat().st_mode) == 0o600


def test_a_store_in_use_is_not_replaced(home: Path, tmp_path: Path) -> None:
    store, target = home / "foredeck.db", tmp_path / "backup.db"
    back_up(store, target, ignore)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreUnavailable, match=f"process {holder.pid}: close all"):
            restore(target, store, force=True, report=ignore)
        inode = store.stat().st_ino
        holder.communicate("")
    assert store.stat().st_ino == inode
    assert sorted(path.name for path in home.iterdir() if "replaced" in path.name) == []


KILLED = """
import os, sys
from pathlib import Path
from foredeck.store import backup
source, target = map(Path, sys.argv[2:])
def die(*_):
    os._exit(9)
if sys.argv[1] == "backing up":
    backup.back_up(source, target, die)
elif sys.argv[1] == "restoring":
    backup.restore(source, target, force=True, report=die)
else:
    backup._rename_store = die if sys.argv[1] == "checked" else backup._rename_store
    Path.replace = die
    backup.restore(source, target, force=True, report=lambda *_: None)
"""


@pytest.mark.parametrize("moment", ["backing up", "restoring", "checked", "in place"])
def test_whoever_is_killed_leaves_a_store_and_a_backup(
    home: Path, tmp_path: Path, moment: str
) -> None:
    store, target = home / "foredeck.db", tmp_path / "backup.db"
    back_up(store, target, ignore)
    saved = target.read_bytes()
    with closing(open_sqlite(store)) as opened:
        newest = opened.commit(batch(note("a", "later")))
    files = [store, target] if moment == "backing up" else [target, store]
    command = [sys.executable, "-c", KILLED, moment, *map(str, files)]
    assert subprocess.run(command, check=False).returncode == 9
    assert target.read_bytes() == saved
    assert latest(store) == newest
    restore(target, store, force=True, report=ignore)
    assert latest(store) != newest


def damaged(source: Path, target: Path) -> Path:
    """A copy with a torn page in the middle, as a bad disk leaves one."""
    with closing(sqlite3.connect(source)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(source.read_bytes())
    for page in range(2, len(data) // 4096):
        data[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    target.write_bytes(data)
    return target


def test_a_damaged_store_is_not_backed_up_but_replaced(home: Path, tmp_path: Path) -> None:
    store, target = home / "foredeck.db", tmp_path / "backup.db"
    back_up(store, target, ignore)
    good, saved = target.read_bytes(), latest(store)
    damaged(store, tmp_path / "damaged")
    (tmp_path / "damaged").replace(store)
    with pytest.raises(Corrupt, match=r"damaged .* nothing was written"):
        back_up(store, target, ignore)
    assert target.read_bytes() == good
    assert restore(target, store, force=True, report=ignore).exists()
    store.write_bytes(b"no database any more " * 500)
    kept = restore(target, store, force=True, report=ignore)
    assert kept.read_bytes().startswith(b"no database any more")
    assert latest(store) == saved


def test_what_is_no_backup_changes_nothing(home: Path, tmp_path: Path) -> None:
    store = home / "foredeck.db"
    before = latest(store)
    back_up(store, tmp_path / "good.db", ignore)
    (tmp_path / "text").write_text("no database " * 500)
    (tmp_path / "torn").write_bytes((tmp_path / "good.db").read_bytes()[:9000])
    (tmp_path / "empty").touch()
    damaged(tmp_path / "good.db", tmp_path / "bits")
    with closing(sqlite3.connect(tmp_path / "other")) as db:
        db.execute("CREATE TABLE other (x)")
    with closing(sqlite3.connect(tmp_path / "newer")) as db:
        db.execute("PRAGMA user_version = 99")
        db.execute(f"PRAGMA application_id = {0x666F7265}")
    for name in ("text", "torn", "empty", "bits", "other", "newer", "missing"):
        with pytest.raises((StoreUnavailable, Corrupt), match=name):
            restore(tmp_path / name, store, force=True, report=ignore)
        assert latest(store) == before
    for name in ("text", "torn"):
        with pytest.raises(
            Corrupt, match=f"{name} is damaged, or no backup .* nothing was changed"
        ):
            restore(tmp_path / name, store, force=True, report=ignore)
        assert not [path for path in home.iterdir() if path.name.startswith((".", "foredeck.db."))]


def test_only_an_earlier_backup_is_replaced_by_one(home: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("all of it")
    for target, reason in [
        (tmp_path / "thesis", "not a backup"),
        (home / "foredeck.db", "in use"),
        (tmp_path / "nowhere" / "b.db", "no such folder"),
    ]:
        with pytest.raises(ForedeckError, match=reason):
            back_up(home / "foredeck.db", target, ignore)
    assert (tmp_path / "thesis").read_text() == "all of it"
    for _ in range(2):
        contents = back_up(home / "foredeck.db", tmp_path / "backup.db", ignore)
    assert contents == contents_of(tmp_path / "backup.db")


def test_the_pair_of_commands(home: Path, tmp_path: Path, foredeck: Foredeck) -> None:
    target = tmp_path / "backup.db"
    load_user(home)
    told = foredeck("backup", target)
    assert "6 versions, 4 objects, 3 transactions" in told
    assert "user.key" in told
    made = foredeck.json("backup", target, "--verify")
    assert (made["counts"]["version"], len(made["verified"])) == (6, 64)
    (home / "layers").mkdir(exist_ok=True)
    (home / "layers" / "search-of-before.db").touch()
    assert "--force" in foredeck("restore", target, code=3)
    assert Path(foredeck.json("restore", target, "--force")["kept"]).is_file()
    assert list((home / "layers").iterdir()) == []
    assert "--call" in foredeck("restore", tmp_path / "none.db", code=4)
    assert "--call N" in foredeck("restore", target, "--dry-run", code=2)


def test_a_machine_without_a_store_gets_the_backup(
    home: Path, tmp_path: Path, foredeck: Foredeck
) -> None:
    back_up(home / "foredeck.db", tmp_path / "backup.db", ignore)
    done = foredeck.json(tmp_path / "new" / "home", "restore", tmp_path / "backup.db")
    assert (done["kept"], done["counts"]["transaction"]) == (None, 3)
    assert latest(tmp_path / "new" / "home" / "foredeck.db") == latest(home / "foredeck.db")
    assert "nothing is stored yet" in foredeck(
        tmp_path / "empty", "backup", tmp_path / "x.db", code=3
    )


def test_half_a_purge_is_neither_kept_nor_finished_elsewhere(
    home: Path, tmp_path: Path, foredeck: Foredeck
) -> None:
    back_up(home / "foredeck.db", tmp_path / "backup.db", ignore)
    (home / "purge.jsonl").touch()
    for words in (["backup", str(tmp_path / "b.db")], ["restore", str(tmp_path / "backup.db")]):
        assert "foredeck purge" in foredeck(*words, code=3)
    assert not (tmp_path / "b.db").exists()

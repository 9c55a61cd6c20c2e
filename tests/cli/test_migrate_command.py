"""`foredeck migrate`: a whole state folder from SQLite to XTDB and back, killed on the way."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from stored_session import SESSION, make_home
from test_ingest_command import SESSION as HISTORY
from test_ingest_command import claude_lines

from commands import Foredeck
from foredeck.context.state.descriptions import nicknames
from foredeck.store.copying import compare
from foredeck.store.protocol import records_of
from foredeck.store.store import open_sqlite
from foredeck_xtdb.database.adapter import open_xtdb
from foredeck_xtdb.local_copy import XtdbRemote
from foredeck_xtdb.node import own_node_folder, stop
from foredeck_xtdb.runtime import Runtime
from store.documents import batch, note


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with a session in SQLite."""
    return make_home(tmp_path_factory.mktemp("recorded"))


@pytest.fixture
def home(
    runtime: Runtime, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A copy of it that may be changed, with an installed node, which is stopped at the end."""
    folder = tmp_path / "home"
    shutil.copytree(recorded, folder)
    (folder / "xtdb").mkdir()
    (folder / "xtdb" / runtime.folder.name).symlink_to(runtime.folder)
    monkeypatch.setenv("FOREDECK_HOME", str(folder))
    yield folder
    stop(own_node_folder(folder))


def exported(foredeck: Foredeck, target: Path) -> bytes:
    """The session, exported from the configured store."""
    foredeck("export", SESSION, target)
    return target.read_bytes()


def test_there_and_back_with_equal_exports(
    home: Path, tmp_path: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = exported(foredeck, tmp_path / "before")
    history = foredeck.json("history", "a.txt")
    there = foredeck.json("migrate", "sqlite", "xtdb")
    assert there["new_transactions"] == there["transactions"] > 4
    assert there["later_transactions"] == 0
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    assert exported(foredeck, tmp_path / "xtdb") == before
    assert foredeck.json("history", "a.txt") == history
    for version in history["versions"]:
        assert foredeck.json("cat", "a.txt", "--at", version["token"])["token"] == version["token"]
    back = foredeck.json("migrate", "xtdb", f"sqlite:{tmp_path / 'back.db'}")
    assert back["sha256"] == there["sha256"]
    again = foredeck.json("migrate", "xtdb", f"sqlite:{tmp_path / 'back.db'}")
    assert (again["new_transactions"], again["sha256"]) == (0, there["sha256"])
    monkeypatch.delenv("FOREDECK_STORE")
    shutil.copy(tmp_path / "back.db", home / "foredeck.db")
    assert exported(foredeck, tmp_path / "after") == before


def test_what_was_purged_or_forgotten_in_xtdb_stays_behind(
    home: Path, tmp_path: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = foredeck.json("migrate", "sqlite", "xtdb")
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    foredeck.json("purge", "--text", "Successfully wrote", "--yes")
    back = foredeck.json("migrate", "xtdb", f"sqlite:{tmp_path / 'purged.db'}")
    assert back["versions"] == there["versions"]
    foredeck.json("forget", SESSION, "--yes")
    back = foredeck.json("migrate", "xtdb", f"sqlite:{tmp_path / 'forgotten.db'}")
    assert 0 < back["versions"] < there["versions"]
    assert home.is_dir()


def test_what_was_forgotten_and_ingested_again_is_copied(
    home: Path, tmp_path: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    file = tmp_path / f"{HISTORY}.jsonl"
    file.write_text(claude_lines())
    assert foredeck.json("ingest", file)["new"] == 1
    foredeck.json("xtdb", "sync")
    foredeck.json("forget", HISTORY, "--yes")
    assert foredeck.json("ingest", file, "--forgotten")["new"] == 1
    back = foredeck.json("migrate", "xtdb", f"sqlite:{tmp_path / 'back.db'}")
    assert back["new_transactions"] == back["transactions"]
    # In a state folder of before that copy is brought back whole.
    stop(own_node_folder(home))
    for folder in ("copies", "xtdb/data"):
        shutil.rmtree(home / folder)
    there = foredeck.json("migrate", f"sqlite:{tmp_path / 'back.db'}", "xtdb")
    assert there["sha256"] == back["sha256"]


def test_a_copy_is_seen_where_xtdb_was_in_use_before(
    home: Path, tmp_path: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A local copy that knows an empty XTDB learns what was migrated, and what was restored."""
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    foredeck.json("xtdb", "up")
    assert foredeck.json("sessions")["sessions"] == []
    foredeck.json("migrate", "sqlite", "xtdb")
    found = foredeck.json("sessions")["sessions"]
    assert len(found) == 1
    foredeck.json("backup", tmp_path / "backup.db")
    stop(own_node_folder(home))
    for folder in ("copies", "xtdb/data"):
        shutil.rmtree(home / folder)
    foredeck.json("xtdb", "up")
    assert foredeck.json("sessions")["sessions"] == []
    stop(own_node_folder(home))
    shutil.rmtree(home / "xtdb/data")
    foredeck.json("restore", tmp_path / "backup.db")
    assert foredeck.json("sessions")["sessions"] == found


def test_what_waits_in_the_local_copy_is_copied_too(
    home: Path, tmp_path: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    foredeck.json("migrate", "sqlite", "xtdb")
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    foredeck.json("history", "a.txt")
    with monkeypatch.context() as undelivered:
        undelivered.setattr(XtdbRemote, "start", lambda _self: None)
        foredeck.json("name", "a.txt", "mine")
    assert foredeck.json("xtdb", "status")["journal"]["entries"] == 1
    foredeck.json("migrate", "xtdb", f"sqlite:{tmp_path / 'copy.db'}")
    with closing(open_sqlite(tmp_path / "copy.db")) as store:
        assert nicknames(store) == {head.id: "mine" for head in store.query("file")}
    assert home.is_dir()


def run_and_kill(words: list[str], steps: int) -> None:
    """Run `foredeck migrate`, and SIGKILL it in the middle of its n-th transaction."""
    script = (
        "import os, signal, sys\n"
        "from foredeck.cli.main import main\n"
        "from foredeck.store.store import Store\n"
        "from foredeck_xtdb.database.client import XtdbClient\n"
        "left = int(sys.argv[1])\n"
        "def dying(method):\n"
        "    def call(*args, **more):\n"
        "        global left\n"
        "        left -= 1\n"
        "        if left == 0:\n"
        "            try:\n"
        "                return method(*args, **more)\n"
        "            finally:\n"
        "                os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return method(*args, **more)\n"
        "    return call\n"
        "Store.commit = dying(Store.commit)\n"
        "XtdbClient.commit = dying(XtdbClient.commit)\n"
        "sys.exit(main(sys.argv[2:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(steps), *words], capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_a_killed_migration_continues(home: Path, tmp_path: Path, foredeck: Foredeck) -> None:
    source, back = open_sqlite(home / "foredeck.db"), tmp_path / "back.db"
    count = len(list(records_of(source)))
    for target, words in (
        ("xtdb", ["migrate", "sqlite", "xtdb"]),
        ("sqlite", ["migrate", "xtdb", f"sqlite:{back}"]),
    ):
        for steps in (1, 1, 2):
            run_and_kill(words, steps)
        found = foredeck.json(*words)
        assert 0 < found["new_transactions"] < count, target
        assert found["transactions"] == count
    with closing(source), closing(open_sqlite(back)) as copied:
        assert compare(source, copied).equal


def test_what_cannot_be_migrated_is_reported(
    home: Path, tmp_path: Path, foredeck: Foredeck
) -> None:
    def refused(code: int, *words: str) -> str:
        return foredeck("migrate", *words, code=code)

    other = tmp_path / "other.db"
    assert "does not exist" in refused(3, f"sqlite:{other}", "sqlite")
    assert not other.exists()
    assert "the same store" in refused(2, "sqlite", f"sqlite:{home / 'foredeck.db'}")
    assert "is not a store" in refused(2, "postgres", "sqlite")
    assert "http://" in refused(2, "sqlite", "xtdb:localhost")
    with closing(open_sqlite(other)) as store:
        store.commit(batch(note("mine")))
    assert "not empty" in refused(1, "sqlite", f"sqlite:{other}")
    node = foredeck.json("xtdb", "up")
    token = Path(node["token_file"]).read_text()
    with closing(open_xtdb(node["url"], token=token)) as xtdb:
        xtdb.commit(batch(note("mine")))
    assert "not empty" in refused(1, "sqlite", "xtdb")


@pytest.mark.parametrize("words", [["sqlite", "{}"], ["{}", "sqlite"]])
def test_a_file_of_another_program_is_left_where_it_is(
    recorded: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    foredeck: Foredeck,
    words: list[str],
) -> None:
    monkeypatch.setenv("FOREDECK_HOME", str(recorded))
    other = tmp_path / "passwd"
    other.write_text("root:x:0:0:root:/root:/bin/sh\n")

    said = foredeck("migrate", *(word.format(f"sqlite:{other}") for word in words), code=3)
    assert f"{other} is not a foredeck store: name a file of its own" in said
    assert "move" not in said

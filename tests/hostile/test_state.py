"""A state folder that somebody or something has damaged: nothing is replaced without a word."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from foredeck.cli.doctor_command import check_state
from foredeck.cli.main import main
from foredeck.config import Config
from foredeck.engine.engine import Engine
from foredeck.hosts.protocol import HostProgram, InitializeParams
from foredeck.memory.keeping import NewMemory
from foredeck.memory.trust import KEY_FILE, load_user
from foredeck.memory.user_acts import UserActs
from foredeck.store.store import open_sqlite


def no_bytes(file: Path) -> None:
    file.write_bytes(b"")


def no_tables(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.executescript("CREATE TABLE a (b); DROP TABLE a")


def text(file: Path) -> None:
    file.write_text("notes of mine\n" * 400)


def zeros(file: Path) -> None:
    file.write_bytes(bytes(65_536))


def started(home: Path) -> list[str]:
    """What Pi tells of an engine that starts."""
    hello = InitializeParams(
        protocol=1, shim="0", host=HostProgram(name="pi", version="1"), cwd="/", trusted=False
    )
    with closing(Engine(Config(home=home))) as engine:
        return list(engine.initialize(hello)["warnings"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return home


@pytest.mark.parametrize("make", [no_bytes, no_tables, text, zeros])
def test_what_is_no_store_is_kept_and_the_user_told(
    home: Path, make: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / "foredeck.db"
    make(file)
    os.utime(file, (1_700_000_000, 1_700_000_000))
    before = file.read_bytes()

    assert main(["sessions", "--home", str(home)]) != 0
    assert "foredeck restore" in capsys.readouterr().err
    (finding,) = [each for each in check_state(Config(home=home)) if each.name == "store"]
    assert finding.status == "problem"
    assert file.read_bytes() == before

    (told,) = started(home)
    assert "it is kept as foredeck.db.damaged-" in told
    (kept,) = home.glob("foredeck.db.damaged-*")
    assert kept.read_bytes() == before
    (again,) = started(home)
    assert again.startswith("An earlier store was damaged")
    assert str(kept) in again
    assert started(home) == []


def test_another_programs_database_is_left_alone(home: Path) -> None:
    with closing(sqlite3.connect(home / "foredeck.db")) as db:
        db.execute("CREATE TABLE a (b)")
    before = (home / "foredeck.db").read_bytes()
    assert main(["sessions", "--home", str(home)]) != 0
    assert [path.name for path in home.iterdir()] == ["foredeck.db"]
    assert (home / "foredeck.db").read_bytes() == before


def test_a_file_that_another_engine_is_making_is_waited_for(home: Path) -> None:
    no_bytes(home / "foredeck.db")
    assert started(home) == []


def remember(home: Path) -> None:
    with closing(open_sqlite(home / "foredeck.db")) as store:
        UserActs(store, load_user(home)).add(NewMemory("preference", "Tabs"))


def test_a_damaged_key_is_told_in_pi(home: Path) -> None:
    remember(home)
    (home / KEY_FILE).write_text("nonsense")
    (told,) = started(home)
    assert "Nothing counts as said by you" in told
    assert f"{home / KEY_FILE} is damaged" in told


def test_a_missing_key_is_told_in_pi(home: Path) -> None:
    remember(home)
    (home / KEY_FILE).unlink()
    (told,) = started(home)
    assert f"{home / KEY_FILE} is missing" in told


def test_a_folder_of_another_user_is_not_ones_own(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root can use it, and its owner can read it."""
    monkeypatch.setattr(os, "geteuid", lambda: home.stat().st_uid + 1)
    (found,) = [each for each in check_state(Config(home=home)) if each.name == "permissions"]
    assert (found.status, "belongs to user" in found.text) == ("problem", True)
    (told,) = started(home)
    assert "belongs to user" in told

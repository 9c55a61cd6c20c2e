"""`foredeck engine` itself: the real engine behind the wire."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from engine_process import INITIALIZE, EngineProcess, request

COMMAND = [sys.executable, "-m", "foredeck.cli.main", "engine"]


def test_a_damaged_store_is_kept_and_a_fresh_one_takes_its_place(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    damaged = b"this is no database" * 1000
    (home / "foredeck.db").write_bytes(damaged)
    with EngineProcess(home, COMMAND) as engine:
        (warning,) = engine.ask(1, "initialize", INITIALIZE)["result"]["warnings"]
        assert engine.end() == 0
    (kept,) = home.glob("foredeck.db.damaged-????-??-??")
    assert kept.name in warning
    assert kept.read_bytes() == damaged
    with EngineProcess(home, COMMAND) as engine:
        (again,) = engine.ask(1, "initialize", INITIALIZE)["result"]["warnings"]
        assert str(kept) in again
    with EngineProcess(home, COMMAND) as engine:
        assert engine.ask(1, "initialize", INITIALIZE)["result"]["warnings"] == []


def test_a_store_that_cannot_be_opened_is_an_error_and_ping_still_works(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    with closing(sqlite3.connect(home / "foredeck.db")) as db:
        db.execute("CREATE TABLE somebody_elses (a)")
    with EngineProcess(home, COMMAND) as engine:
        engine.send(request(1, "initialize", INITIALIZE))
        assert engine.receive()["error"]["code"] == -32003
        assert engine.ask(2, "ping")["result"] == {}

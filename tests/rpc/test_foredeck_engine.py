"""`foredeck engine` itself: the real engine behind the wire."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from engine_process import INITIALIZE, EngineProcess, request

COMMAND = [sys.executable, "-m", "foredeck.cli.main", "engine"]


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}


def test_a_session_is_served_and_resumed(tmp_path: Path) -> None:
    first = {
        "session": "s",
        "keep": 0,
        "messages": [user("hello")],
        "entries": ["a1"],
        "system": [],
        "tools": [],
        "model": None,
        "time_ms": 1,
        "outcomes": [],
    }
    with EngineProcess(tmp_path / "home", COMMAND) as engine:
        engine.initialize()
        assert engine.ask(3, "context/assemble", first)["result"]["call"] == 1
        assert engine.ask(4, "session/close", {"session": "s", "reason": "quit"})["result"] == {}
        assert engine.end() == 0
    with EngineProcess(tmp_path / "home", COMMAND) as engine:
        assert engine.ask(1, "initialize", INITIALIZE)["result"]["store"] == "sqlite"
        opened = {"session": "s", "file": None, "cwd": "/", "reason": "resume", "parent": None}
        answer = engine.ask(2, "session/open", opened)["result"]
        assert (answer["calls"], answer["resumed"]) == (1, True)
        assert engine.ask(3, "shutdown")["result"] == {}
        assert engine.wait() == 0


def test_the_store_is_made_in_the_state_folder_for_this_user_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    with EngineProcess(home, COMMAND) as engine:
        engine.initialize()
        assert engine.end() == 0
    assert home.stat().st_mode & 0o077 == 0
    assert (home / "foredeck.db").is_file()


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

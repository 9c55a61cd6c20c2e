"""Which engines are at work, and on which session."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from file_agent import FileAgent
from foredeck.config import Config
from foredeck.engine.engine import Engine
from foredeck.hosts.protocol import HostProgram, InitializeParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.store.at_work import EngineAtWork, engines_at_work


def test_an_engine_says_what_it_has_open_until_it_ends(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    assert engines_at_work(home) == []
    agent = FileAgent(home, work, "s")
    agent.answer()
    assert engines_at_work(home) == [EngineAtWork(os.getpid(), os.getpid(), "s")]
    agent.close()
    assert engines_at_work(home) == []


def test_it_names_its_host(tmp_path: Path) -> None:
    params = SimulatedHost("s").opening(str(tmp_path))
    with closing(Engine(Config(home=tmp_path / "home"))) as engine:
        engine.initialize(
            InitializeParams(
                protocol=1,
                shim="0",
                host=HostProgram(name="pi", version="1"),
                cwd=str(tmp_path),
                trusted=False,
                pid=4321,
            )
        )
        engine.open_session(params)
        assert [found.host for found in engines_at_work(tmp_path / "home")] == [4321]


HELD = """
import sys, time
from pathlib import Path
from foredeck.store.at_work import AtWork
AtWork(Path(sys.argv[1])).on("s")
print("held", flush=True)
time.sleep(600)
"""


def test_a_killed_engine_is_not_at_work(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HELD, str(tmp_path)], stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        assert [engine.pid for engine in engines_at_work(tmp_path)] == [process.pid]
        process.send_signal(signal.SIGKILL)
    assert engines_at_work(tmp_path) == []
    assert list((tmp_path / "at-work").iterdir()) == []


def test_what_cannot_be_read_is_some_engine(tmp_path: Path) -> None:
    folder = tmp_path / "at-work"
    folder.mkdir()
    os.mkfifo(folder / "1-fifo")
    (folder / "2-link").symlink_to("/dev/zero")
    assert engines_at_work(tmp_path) == []

"""`foredeck xtdb`, on a node that scripts/setup has installed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from commands import Foredeck
from foredeck.config import load_config
from foredeck.store.place import open_store
from foredeck_xtdb.local_copy import XtdbRemote
from foredeck_xtdb.node import own_node_folder, start, stop
from foredeck_xtdb.runtime import Runtime
from store.documents import batch, note
from store.journaled import until

WAITS = "Waiting for the XTDB node, which is being started or stopped.\n"


@pytest.fixture
def home(runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder with an installed node, which is stopped at the end."""
    (tmp_path / "xtdb").mkdir()
    (tmp_path / "xtdb" / runtime.folder.name).symlink_to(runtime.folder)
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path))
    monkeypatch.setenv("FOREDECK_XTDB__TOPOLOGY", "memory")
    yield tmp_path
    stop(own_node_folder(tmp_path))


@pytest.mark.usefixtures("home")
def test_up_status_down(foredeck: Foredeck) -> None:
    counts = dict.fromkeys(("entries", "bytes", "lag_ms", "refused"), 0)
    nothing = {**counts, "oldest_ms": None, "reason": None}
    away = {"running": False, "url": None, "healthy": False, "installed": True}
    assert foredeck.json("xtdb", "status", code=3) == {**away, "journal": nothing}
    up = foredeck.json("xtdb", "up")
    assert up["started"]
    assert foredeck.json("xtdb", "up") == {**up, "started": False}
    status = foredeck.json("xtdb", "status")
    assert (status["healthy"], status["lag"], status["pid"]) == (True, 0, up["pid"])
    assert foredeck.json("xtdb", "down") == {"stopped": True}
    assert foredeck.json("xtdb", "down") == {"stopped": False}


def test_up_survives_the_terminal(home: Path, foredeck: Foredeck) -> None:
    words = [sys.executable, "-m", "foredeck.cli.main", "xtdb", "up", "--json"]
    # A shell that leads a session, as a terminal has one; its end hangs up on all that is in it.
    shell = subprocess.Popen(
        ["sh", "-c", '"$@" && echo && read wait', "sh", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Where the tests run under nohup, the shell would ignore the hangup, too, and never end.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    up = json.loads("".join(iter(shell.stdout.readline, "\n")))
    os.killpg(shell.pid, signal.SIGHUP)
    shell.wait()
    shell.stdout.close()
    assert foredeck.json("xtdb", "status")["pid"] == up["pid"]
    assert own_node_folder(home).running() is not None


@pytest.mark.usefixtures("home")
def test_text_for_people(foredeck: Foredeck) -> None:
    assert "No node has run here yet" in foredeck("xtdb", "logs")
    assert "XTDB runs at http://127.0.0.1:" in foredeck("xtdb", "up")
    assert "XTDB runs already" in foredeck("xtdb", "up")
    assert "healthy          yes" in foredeck("xtdb", "status")
    assert "listening on loopback" in foredeck("xtdb", "logs", "--lines", "1")
    assert "is installed" in foredeck("xtdb", "install")


def test_a_command_starts_the_node_where_its_copy_may_lack_something(
    home: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    folder = own_node_folder(home)
    foredeck("sessions")
    assert folder.running() is None, "nothing can be there yet"
    up = foredeck.json("xtdb", "up")
    foredeck.json("xtdb", "down")
    foredeck("sessions")
    assert stop(folder).pid != up["pid"]
    foredeck("sessions")
    assert folder.running() is None


def test_a_server_of_somebody_else_is_used_by_its_address(
    home: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = foredeck.json("xtdb", "up")
    monkeypatch.setenv("FOREDECK_HOME", str(home / "other"))
    monkeypatch.setenv("FOREDECK_XTDB_URL", up["url"])
    assert "xtdb.token_file names" in foredeck("sessions", code=3)
    monkeypatch.setenv("FOREDECK_XTDB__TOKEN_FILE", up["token_file"])
    foredeck("sessions")
    status = foredeck.json("xtdb", "status")
    assert status["url"] == up["url"]
    assert "pid" not in status


def test_without_an_installed_node_it_says_what_to_do(
    tmp_path: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path))
    assert "foredeck xtdb install" in foredeck("xtdb", "up", code=3)
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    assert "foredeck xtdb install" in foredeck("sessions", code=3)


@pytest.mark.parametrize("words", [["status"], ["logs"], ["down"]])
def test_before_an_install_every_action_names_it(
    tmp_path: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    said = foredeck("xtdb", *words, code=None)
    assert "`foredeck xtdb install` fetches one, then `foredeck xtdb up`" in said
    assert not (tmp_path / "file.tar").exists()


def test_doctor_looks_at_it(
    home: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")

    def store_finding() -> dict[str, str]:
        checks = foredeck.json("doctor", code=None)["checks"]
        return next(check for check in checks if check["name"] == "store")

    assert "started at first use" in store_finding()["text"]
    assert own_node_folder(home).running() is None
    foredeck("xtdb", "up")
    assert store_finding()["text"] == "XTDB of our own answers"
    monkeypatch.setenv("FOREDECK_XTDB_URL", "http://127.0.0.1:9")
    assert store_finding()["status"] == "problem"


def let_one_wait(foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a transaction in the local copy that was not delivered."""
    with monkeypatch.context() as undelivered:
        undelivered.setenv("FOREDECK_STORE", "xtdb")
        undelivered.setattr(XtdbRemote, "start", lambda _self: None)
        # Nothing is fetched either, so there is nothing to wait for.
        undelivered.setattr("foredeck_xtdb.local_copy._COMMAND_PATIENCE", 0.0)
        with closing(open_store(load_config().config, lazy=True)) as store:
            store.commit(batch(note("mine", "text")))
    assert foredeck.json("xtdb", "status", code=None)["journal"]["entries"] == 1


@pytest.mark.usefixtures("home")
def test_sync_delivers_what_waits(foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch) -> None:
    assert foredeck.json("xtdb", "sync") == {"delivered": 0, "refused": 0, "reason": None}
    let_one_wait(foredeck, monkeypatch)
    assert foredeck.json("xtdb", "sync") == {"delivered": 1, "refused": 0, "reason": None}
    assert foredeck.json("xtdb", "status", code=None)["journal"]["entries"] == 0
    assert foredeck("xtdb", "sync") == "Nothing to deliver.\n"


@pytest.mark.usefixtures("home")
def test_a_query_sees_what_waits(foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch) -> None:
    let_one_wait(foredeck, monkeypatch)
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    query = '{:find [?e] :where [[?e :foredeck/type "note"]]}'
    assert foredeck.json("xtdb", "query", query)["rows"] == [["foredeck/doc/mine"]]


@pytest.mark.usefixtures("home")
def test_a_backup_holds_what_waited(
    foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FOREDECK_XTDB__TOPOLOGY", "rocksdb")
    foredeck.json("xtdb", "up")
    let_one_wait(foredeck, monkeypatch)
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    assert foredeck.json("backup", tmp_path / "one.db")["hints"] == []
    assert foredeck.json("xtdb", "status", code=None)["journal"]["entries"] == 0
    let_one_wait(foredeck, monkeypatch)
    foredeck.json("xtdb", "down")
    assert foredeck.json("backup", tmp_path / "two.db")["counts"]["transaction"] == 2


def test_commands_wait_for_a_node_that_is_being_started(
    home: Path, runtime: Runtime, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    monkeypatch.setenv("FOREDECK_XTDB__TOPOLOGY", "rocksdb")
    # However slow the machine: progress is none of this.
    monkeypatch.setattr("foredeck.cli.output.LINE_SECONDS", 3600.0)
    foredeck.json("xtdb", "up")
    folder = own_node_folder(home)
    for words in (
        ["backup", "made.db"],
        ["xtdb", "query", "{:find [?e] :where [[?e :foredeck/type]]}"],
    ):
        foredeck.json("xtdb", "down")
        other = threading.Thread(target=start, args=(folder, runtime))
        other.start()
        until(lambda: not folder.is_free())
        foredeck(*words)
        other.join()
        assert foredeck.err == WAITS, words


def test_status_does_not_wait(home: Path, foredeck: Foredeck) -> None:
    with own_node_folder(home).lock():
        foredeck("xtdb", "status", code=3)
    assert "answers here; one is being started or stopped." in foredeck.out
    foredeck("xtdb", "status", code=3)
    assert "answers here; `foredeck xtdb up` starts one" in foredeck.out


def test_sync_reports_what_still_waits(
    foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path))
    monkeypatch.setenv("FOREDECK_XTDB_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("foredeck_xtdb.maintenance._AWAY_SECONDS", 0.0)
    let_one_wait(foredeck, monkeypatch)
    assert "1 transactions wait in the local copy" in foredeck("xtdb", "sync", code=3)

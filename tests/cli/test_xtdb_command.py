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
from typing import Any

import pytest

from foredeck.cli.main import main
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


def run_json(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    """Exit code and JSON of `foredeck xtdb ...`."""
    capsys.readouterr()
    code = main(["xtdb", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("home")
def test_up_status_down(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = {
        "entries": 0,
        "bytes": 0,
        "oldest_ms": None,
        "lag_ms": 0,
        "refused": 0,
        "reason": None,
    }
    away = {"running": False, "url": None, "healthy": False, "installed": True}
    assert run_json(capsys, "status") == (3, {**away, "journal": nothing})
    code, up = run_json(capsys, "up")
    assert (code, up["started"]) == (0, True)
    assert run_json(capsys, "up") == (0, {**up, "started": False})
    code, status = run_json(capsys, "status")
    assert code == 0
    assert (status["healthy"], status["lag"], status["pid"]) == (True, 0, up["pid"])
    assert run_json(capsys, "down") == (0, {"stopped": True})
    assert run_json(capsys, "down") == (0, {"stopped": False})


def test_up_survives_the_terminal(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    code, status = run_json(capsys, "status")
    assert (code, status["pid"]) == (0, up["pid"])
    assert own_node_folder(home).running() is not None


@pytest.mark.usefixtures("home")
def test_text_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["xtdb", "logs"]) == 0
    assert "No node has run here yet" in capsys.readouterr().out
    assert main(["xtdb", "up"]) == 0
    assert "XTDB runs at http://127.0.0.1:" in capsys.readouterr().out
    assert main(["xtdb", "up"]) == 0
    assert "XTDB runs already" in capsys.readouterr().out
    assert main(["xtdb", "status"]) == 0
    assert "healthy          yes" in capsys.readouterr().out
    assert main(["xtdb", "logs", "--lines", "1"]) == 0
    assert "listening on loopback" in capsys.readouterr().out
    assert main(["xtdb", "install"]) == 0
    assert "is installed" in capsys.readouterr().out


def test_a_command_starts_the_node_where_its_copy_may_lack_something(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    folder = own_node_folder(home)
    assert main(["sessions"]) == 0
    assert folder.running() is None, "nothing can be there yet"
    _, up = run_json(capsys, "up")
    run_json(capsys, "down")
    assert main(["sessions"]) == 0
    assert stop(folder).pid != up["pid"]
    assert main(["sessions"]) == 0
    assert folder.running() is None


def test_a_server_of_somebody_else_is_used_by_its_address(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, up = run_json(capsys, "up")
    monkeypatch.setenv("FOREDECK_HOME", str(home / "other"))
    monkeypatch.setenv("FOREDECK_XTDB_URL", up["url"])
    assert main(["sessions"]) == 3
    assert "xtdb.token_file names" in capsys.readouterr().err
    monkeypatch.setenv("FOREDECK_XTDB__TOKEN_FILE", up["token_file"])
    assert main(["sessions"]) == 0
    code, status = run_json(capsys, "status")
    assert (code, status["url"]) == (0, up["url"])
    assert "pid" not in status


def test_without_an_installed_node_it_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path))
    assert main(["xtdb", "up"]) == 3
    assert "foredeck xtdb install" in capsys.readouterr().err
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    assert main(["sessions"]) == 3
    assert "foredeck xtdb install" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["status"], ["logs"], ["down"]])
def test_before_an_install_every_action_names_it(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
) -> None:
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    main(["xtdb", *words])
    said = "".join(capsys.readouterr())
    assert "`foredeck xtdb install` fetches one, then `foredeck xtdb up`" in said
    assert not (tmp_path / "file.tar").exists()


def test_doctor_looks_at_it(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")

    def store_finding() -> dict[str, str]:
        capsys.readouterr()
        main(["doctor", "--json"])
        checks = json.loads(capsys.readouterr().out)["checks"]
        return next(check for check in checks if check["name"] == "store")

    assert "started at first use" in store_finding()["text"]
    assert own_node_folder(home).running() is None
    assert main(["xtdb", "up"]) == 0
    assert store_finding()["text"] == "XTDB of our own answers"
    monkeypatch.setenv("FOREDECK_XTDB_URL", "http://127.0.0.1:9")
    assert store_finding()["status"] == "problem"


def let_one_wait(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a transaction in the local copy that was not delivered."""
    with monkeypatch.context() as undelivered:
        undelivered.setenv("FOREDECK_STORE", "xtdb")
        undelivered.setattr(XtdbRemote, "start", lambda _self: None)
        # Nothing is fetched either, so there is nothing to wait for.
        undelivered.setattr("foredeck_xtdb.local_copy._COMMAND_PATIENCE", 0.0)
        with closing(open_store(load_config().config, lazy=True)) as store:
            store.commit(batch(note("mine", "text")))
    assert run_json(capsys, "status")[1]["journal"]["entries"] == 1


@pytest.mark.usefixtures("home")
def test_sync_delivers_what_waits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_json(capsys, "sync") == (0, {"delivered": 0, "refused": 0, "reason": None})
    let_one_wait(capsys, monkeypatch)
    assert run_json(capsys, "sync") == (0, {"delivered": 1, "refused": 0, "reason": None})
    assert run_json(capsys, "status")[1]["journal"]["entries"] == 0
    assert main(["xtdb", "sync"]) == 0
    assert capsys.readouterr().out == "Nothing to deliver.\n"


@pytest.mark.usefixtures("home")
def test_a_query_sees_what_waits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    let_one_wait(capsys, monkeypatch)
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    capsys.readouterr()
    assert (
        main(["xtdb", "query", '{:find [?e] :where [[?e :foredeck/type "note"]]}', "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["rows"] == [["foredeck/doc/mine"]]


@pytest.mark.usefixtures("home")
def test_a_backup_holds_what_waited(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FOREDECK_XTDB__TOPOLOGY", "rocksdb")
    run_json(capsys, "up")
    let_one_wait(capsys, monkeypatch)
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    assert main(["backup", str(tmp_path / "one.db"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hints"] == []
    assert run_json(capsys, "status")[1]["journal"]["entries"] == 0
    let_one_wait(capsys, monkeypatch)
    run_json(capsys, "down")
    assert main(["backup", str(tmp_path / "two.db"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["transaction"] == 2


def test_commands_wait_for_a_node_that_is_being_started(
    home: Path,
    runtime: Runtime,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    monkeypatch.setenv("FOREDECK_XTDB__TOPOLOGY", "rocksdb")
    # However slow the machine: progress is none of this.
    monkeypatch.setattr("foredeck.cli.output.LINE_SECONDS", 3600.0)
    run_json(capsys, "up")
    folder = own_node_folder(home)
    for words in (
        ["backup", "made.db"],
        ["xtdb", "query", "{:find [?e] :where [[?e :foredeck/type]]}"],
    ):
        run_json(capsys, "down")
        other = threading.Thread(target=start, args=(folder, runtime))
        other.start()
        until(lambda: not folder.is_free())
        assert main(words) == 0
        other.join()
        assert capsys.readouterr().err == WAITS, words


def test_status_does_not_wait(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with own_node_folder(home).lock():
        assert main(["xtdb", "status"]) == 3
    assert "answers here; one is being started or stopped." in capsys.readouterr().out
    assert main(["xtdb", "status"]) == 3
    assert "answers here; `foredeck xtdb up` starts one" in capsys.readouterr().out


def test_sync_reports_what_still_waits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path))
    monkeypatch.setenv("FOREDECK_XTDB_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("foredeck_xtdb.maintenance._AWAY_SECONDS", 0.0)
    let_one_wait(capsys, monkeypatch)
    assert main(["xtdb", "sync"]) == 3
    assert "1 transactions wait in the local copy" in capsys.readouterr().err

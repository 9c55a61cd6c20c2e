"""A store that cannot be used: Pi goes on, the user gets a clear word, nothing is lost."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from faults import WORK, complaints, sent_records
from foredeck_bench.twin.script import call
from harness import PATIENCE_S, TEXT, Pi
from observed import (
    answered,
    assert_shows,
    assert_stable,
    calls_of,
    notified,
    results,
    session_of,
    stored,
)

SOON = {"FOREDECK_SQLITE__BUSY_TIMEOUT_MS": "800"}
"""Whoever finds the database held by another process is not to wait for long."""


@pytest.fixture
def work(pi: Pi) -> Pi:
    (pi.repo / "a.txt").write_text(TEXT)
    return pi


def connect(pi: Pi) -> sqlite3.Connection:
    """The store's database, which an engine may just be closing."""
    return sqlite3.connect(pi.workspace.foredeck_home / "foredeck.db", timeout=PATIENCE_S)


def assert_pi_went_on(pi: Pi, word: str, **environment: str) -> None:
    """The work is done as plain Pi would; the user hears of it, in words that help."""
    model = pi.serve(WORK)
    run = pi.print("work", foredeck=True, environment=environment)
    assert (run.code, run.stdout.strip()) == (0, "worked")
    assert any(word in line for line in complaints(run)), run.stderr
    assert len(complaints(run)) <= 2
    assert_stable(answered(model))
    assert TEXT in results(model.requests[-1])[0]


def test_a_damaged_store_is_kept_and_work_goes_on_in_a_fresh_one(work: Pi) -> None:
    home = work.workspace.foredeck_home
    (home / "foredeck.db").write_bytes(b"no database" * 4000)
    assert_pi_went_on(work, "a fresh store takes its place")
    (kept,) = home.glob("foredeck.db.damaged-*")
    assert kept.read_bytes() == b"no database" * 4000
    with stored(work) as store:
        assert len(calls_of(store)) == len(WORK)


def test_a_store_that_is_damaged_between_prompts(work: Pi) -> None:
    """Found out at work: the session goes on in a fresh store, and says so."""
    work.serve([*WORK, "on"])
    rpc = work.rpc(foredeck=True)
    rpc.prompt("work")
    home = work.workspace.foredeck_home
    with closing(connect(work)) as db:
        while db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            time.sleep(0.05)  # somebody reads
    with (home / "foredeck.db").open("r+b") as file:
        for at in range(8192, file.seek(0, 2), 4096):
            file.seek(at)
            file.write(b"\xa5" * 4096)
    rpc.kill_engine()
    rpc.prompt("on")
    assert len(list(home.glob("foredeck.db.damaged-????-??-??"))) == 1
    assert any("a fresh store takes its place" in text for text in notified(rpc))
    with stored(work) as store:
        assert calls_of(store)


def test_a_store_that_another_process_holds(work: Pi) -> None:
    assert work.print("/foredeck", foredeck=True).code == 0
    with closing(connect(work)) as db:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        assert_pi_went_on(work, "another process holds it", **SOON)


def test_a_store_that_another_process_holds_for_a_while(work: Pi) -> None:
    """The calls meanwhile go out without it; afterwards nothing is missing."""
    more = [call("bash", command="seq 200"), "held", call("read", path="a.txt"), "free"]
    model = work.serve([*WORK, *more])
    rpc = work.rpc(foredeck=True, environment=SOON)
    rpc.prompt("work")
    with closing(connect(work)) as db:
        db.execute("BEGIN IMMEDIATE")
        rpc.prompt("go on")
        told = notified(rpc)
    assert len(told) == 1
    assert "Pi goes on" in told[0]
    rpc.prompt("and on")
    assert notified(rpc) == told
    assert_stable(answered(model))
    with stored(work) as store:
        assert len(store.query("toolcall")) == len(results(model.requests[-1]))
        for record, request in zip(sent_records(store), model.requests, strict=True):
            assert_shows(store, session_of(store), record.ordinal, request)


def test_a_state_folder_that_cannot_be_written(work: Pi, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert_pi_went_on(work, "file", FOREDECK_HOME=str(tmp_path / "file"))


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs prlimit")
def test_a_disk_that_is_full(work: Pi, checkout: Path) -> None:
    """The engine may not make its files any longer: as on a full disk, a write fails."""
    engine = ["prlimit", "--fsize=150000", str(checkout / ".venv" / "bin" / "foredeck"), "engine"]
    assert_pi_went_on(work, "Pi goes on", FOREDECK_ENGINE=json.dumps(engine))
    model = work.serve(["with room again"])
    assert work.print("go on", foredeck=True, arguments=["--continue"]).code == 0
    (sent,) = answered(model)
    with stored(work) as store:
        assert len(store.query("toolcall")) == len(results(sent)) == 7
        assert_shows(store, session_of(store), calls_of(store)[-1].ordinal, sent)

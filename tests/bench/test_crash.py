"""Some rounds of `foredeck bench crash`: nothing is lost, doubled, different or left behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foredeck.cli.main import main
from foredeck_bench.crash.fuse import AFTER_COMMIT, BEFORE_COMMIT, POINTS, RANDOM
from foredeck_bench.crash.run import CannotRun, CrashPlan, Target, run_crash, shares
from foredeck_bench.crash.tally import Tally
from foredeck_bench.scripted.pi_process import VERSIONS, checkout_pi
from store.xtdb_node import installed_home


def needs_pi(checkout: Path) -> None:
    if checkout_pi(checkout, VERSIONS[0]) is None:
        pytest.skip("Pi is not installed: run scripts/setup")


def assert_sound(tally: Tally, rounds: int) -> None:
    """Nothing is lost, doubled or left in the way, and every prompt is as without the kills."""
    found = tally.to_json()
    assert found["ok"], found["examples"]
    assert (found["rounds"], sum(found["killed"].values())) == (rounds, rounds)
    assert found["acknowledged"] >= rounds
    assert found["prompts"] > 0


@pytest.mark.long
def test_rounds_on_sqlite(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs_pi(checkout)
    assert main(["bench", "crash", "--rounds", "6", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"]
    assert (found["rounds"], found["through_pi"], found["differing_prompts"]) == (6, 3, 0)


@pytest.mark.long
@pytest.mark.parametrize(("target", "rounds"), [("engine", 4), ("node", 3)])
@pytest.mark.usefixtures("runtime")
def test_rounds_on_xtdb(checkout: Path, target: Target, rounds: int) -> None:
    needs_pi(checkout)
    tally = run_crash(CrashPlan(rounds, "xtdb", target, installed=installed_home()))
    assert_sound(tally, rounds)


def test_rounds_are_shared_between_targets() -> None:
    assert shares(CrashPlan(300)) == [("engine", 255, 15), ("pi", 0, 15), ("both", 0, 15)]
    assert shares(CrashPlan(100, target="engine")) == [("engine", 90, 10)]
    assert shares(CrashPlan(30, target="pi")) == [("pi", 0, 30)]


def test_without_a_node_none_can_be_killed() -> None:
    with pytest.raises(CannotRun, match="--store xtdb"):
        run_crash(CrashPlan(10, target="node"))


def test_a_tally_that_holds_a_fault_is_not_ok() -> None:
    tally = Tally()
    assert tally.to_json()["ok"]
    tally.fault("differing", "call 3")
    assert not tally.to_json()["ok"]
    assert tally.to_json()["examples"] == ["differing: call 3"]
    assert {BEFORE_COMMIT, AFTER_COMMIT, RANDOM} < set(POINTS)

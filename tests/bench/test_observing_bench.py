"""Observing under bad conditions, as `foredeck bench observations` makes them."""

from __future__ import annotations

import pytest

from foredeck_bench.crash.run import CHECKOUT
from foredeck_bench.observing.crash import OPERATIONS, STEPS, crash_on
from foredeck_bench.observing.race import race_on
from foredeck_bench.observing.through_pi import through_pi
from foredeck_bench.scripted.pi_process import VERSIONS, checkout_pi
from store.xtdb_node import installed_home


def test_every_step_of_one_operation_may_be_the_last() -> None:
    found = crash_on("sqlite", len(STEPS), 1, lambda _note: None)
    assert found["ok"], found
    assert found["killed"] == {f"engine {step}": 1 for step in STEPS}
    assert found["told"] >= 3
    assert OPERATIONS == 5


@pytest.mark.long
def test_with_a_node_that_is_killed_too(runtime: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runtime
    monkeypatch.setenv("FOREDECK_HOME", str(installed_home()))
    found = crash_on("xtdb", 4, 1, lambda _note: None)
    assert found["ok"], found
    assert {name.split()[0] for name in found["killed"]} == {"engine", "node"}


def test_of_two_processes_one_observes_each_chunk() -> None:
    found = race_on("sqlite", 8)
    assert found["ok"], found
    assert sum(found["wins"]) == found["kept"] == 8


@pytest.mark.long
def test_through_pi_every_answer_stands_once() -> None:
    if checkout_pi(CHECKOUT, VERSIONS[0]) is None:
        pytest.skip("Pi is not installed here: scripts/setup")
    found = through_pi("sqlite", 2, 1, lambda _note: None)
    assert found["ok"], found
    assert {name.split()[0] for name in found["killed"]} == {"engine", "pi"}

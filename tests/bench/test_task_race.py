"""Agents racing for tasks, as `foredeck bench tasks` lets them."""

from __future__ import annotations

import pytest

from foredeck_bench.task_race import board_figures, race_on
from store.xtdb_node import installed_home

ROUNDS = 5


def test_one_of_two_agents_on_one_file_has_each_task() -> None:
    found = race_on("sqlite", ROUNDS)
    assert found["ok"], found
    assert sum(found["wins"]) == ROUNDS


def test_one_of_two_agents_on_one_node_has_each_task(
    runtime: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert runtime
    monkeypatch.setenv("FOREDECK_HOME", str(installed_home()))
    found = race_on("xtdb", ROUNDS)
    assert found["ok"], found
    assert sum(found["wins"]) == ROUNDS


def test_ready_is_timed_in_a_project_of_any_size() -> None:
    assert board_figures(200)["tasks"] == 200

"""Agents on two machines that race for tasks, as `foredeck bench tasks` lets them."""

from __future__ import annotations

import pytest

from foredeck_bench.task_race import PROJECT, race
from machines.two_nodes import Machines

ROUNDS = 5


def test_one_of_two_machines_has_each_task(
    machines: Machines, tmp_path_factory: pytest.TempPathFactory
) -> None:
    agents = [
        {**settings, "home": tmp_path_factory.mktemp(PROJECT)} for settings in machines.settings()
    ]
    found = race(agents, ROUNDS)
    assert found["ok"], found
    assert sum(found["wins"]) == ROUNDS

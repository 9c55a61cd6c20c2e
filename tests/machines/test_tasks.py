"""Agents on two machines that race for tasks."""

from __future__ import annotations

import pytest

from foredeck_bench.crash.acts import Scene, done
from foredeck_bench.crash.other_acts import CLAIM
from machines.two_nodes import Machines


def test_one_of_two_machines_has_each_task(
    machines: Machines, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = [{**s, "home": tmp_path_factory.mktemp("claim")} for s in machines.settings()]
    for number in range(3):
        scenes = [Scene(machine, f"race-{number}") for machine in settings]
        CLAIM.prepare(scenes[0])
        assert done([(CLAIM, scene) for scene in scenes]) == [0, 0]
        states = [("open", False), ("in_progress", True), ("closed", True)]
        assert CLAIM.outcome(scenes[0]) == states

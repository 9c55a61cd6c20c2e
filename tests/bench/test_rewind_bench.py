"""A short `foredeck bench rewind`: a rewinding that is killed is finished by the next."""

from __future__ import annotations

from foredeck_bench.rewind import run_rewind


def test_a_killed_rewinding_is_finished_and_loses_nothing() -> None:
    found = run_rewind(rounds=6, seed=3)
    assert found["interrupted"] > 0
    assert (found["rounds"], found["torn"], found["wrong"], found["persons_lost"]) == (6, 0, 0, 0)

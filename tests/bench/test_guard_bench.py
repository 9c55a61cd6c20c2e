"""A short `foredeck bench guard`: what two agents write into one file is all there."""

from __future__ import annotations

from foredeck_bench.guard import run_guard


def test_two_agents_lose_nothing_that_the_other_wrote() -> None:
    found = run_guard(rounds=60, files=5)
    assert found["errors"] == []
    assert (found["written"], found["lost"], found["stuck"]) == (60, 0, 0)
    assert found["refused"] > 0

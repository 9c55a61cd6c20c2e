"""Memory under bad conditions, as `foredeck bench memory` makes them."""

from __future__ import annotations

from foredeck_bench.remembering.crash import MOMENTS, crash_on
from foredeck_bench.remembering.worker import ACTS


def test_every_act_may_be_cut_off_at_any_moment_of_a_commit() -> None:
    found = crash_on("sqlite", len(ACTS) * len(MOMENTS), 1, lambda _note: None)
    assert found["ok"], found
    assert found["killed"] == {f"{act} {moment}": 1 for act in ACTS for moment in MOMENTS}

"""Ids of a clock that stands still sort as they were made, whatever other clocks do."""

from __future__ import annotations

from foredeck.model.ids import uuid7

NOW_MS = 1_777_777_200_123


def test_a_clock_that_stands_still_beside_others_does_not_mix_them() -> None:
    made = []
    for number in range(1000):
        made.append(uuid7(NOW_MS))
        uuid7(NOW_MS + number % 5 + 1)
        uuid7()
    assert made == sorted(made)
    assert len(set(made)) == len(made)

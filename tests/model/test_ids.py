"""Ids sort as they were made."""

from __future__ import annotations

import pytest

from foredeck.model.identity import uuid7

NOW_MS = 1_777_800_000_000
"""Each test has a millisecond of its own after it, since what it has counted stays."""


@pytest.mark.parametrize("now_ms", [NOW_MS + 100, None], ids=["one millisecond", "any"])
def test_ids_of_one_process_sort_as_they_were_made(now_ms: int | None) -> None:
    made = [uuid7(now_ms) for _ in range(1000)]
    assert made == sorted(made)


def test_a_clock_that_stands_still_beside_others_does_not_mix_them() -> None:
    made = []
    for number in range(1000):
        made.append(uuid7(NOW_MS + 300))
        uuid7(NOW_MS + 301 + number % 5)
        uuid7()
    assert made == sorted(made)
    assert len(set(made)) == len(made)

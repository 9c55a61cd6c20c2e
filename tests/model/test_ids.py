"""Ids sort as they were made."""

from __future__ import annotations

from uuid import UUID

from foredeck.model.ids import uuid7

NOW_MS = 1_777_777_200_000


def test_ids_of_one_process_sort_as_they_were_made() -> None:
    made = [uuid7() for _ in range(1000)]
    assert made == sorted(made)
    assert {UUID(id).version for id in made} == {7}


def test_a_clock_that_stands_still_beside_others_does_not_mix_them() -> None:
    made = []
    for number in range(1000):
        made.append(uuid7(NOW_MS))
        uuid7(NOW_MS + number % 5 + 1)
        uuid7()
    assert made == sorted(made)
    assert len(set(made)) == len(made)

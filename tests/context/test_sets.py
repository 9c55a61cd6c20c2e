"""Pool, active and pinned set: subsets of each other, whose changes add up."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from foredeck.context.state.index import Sets

ACTIONS = ("show", "activate", "deactivate", "expire", "pin", "unpin")
actions = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(1, 4)), max_size=30)


def act(sets: Sets, done: list[tuple[str, int]]) -> None:
    for action, ordinal in done:
        getattr(sets, action)(ordinal)


def members(sets: Sets) -> tuple[set[int], set[int], set[int]]:
    return sets.pool, sets.active, sets.pins


@given(actions)
def test_what_is_pinned_is_active_and_what_is_active_is_in_the_pool(
    done: list[tuple[str, int]],
) -> None:
    sets = Sets()
    for step in done:
        act(sets, [step])
        assert sets.pinned <= sets.active <= sets.pool
        assert sets.pins == sets.pinned | sets.waiting


@given(st.lists(actions, max_size=5))
def test_recorded_changes_give_the_same_sets(calls: list[list[tuple[str, int]]]) -> None:
    sets, replayed = Sets(), Sets()
    for done in calls:
        act(sets, done)
        replayed.replay(sets.pop_changes())
    assert members(replayed) == members(sets)


@given(actions, actions)
def test_becoming_another_branchs_sets_is_recorded_too(
    mine: list[tuple[str, int]], theirs: list[tuple[str, int]]
) -> None:
    sets, other = Sets(), Sets()
    act(sets, mine)
    sets.pop_changes()
    act(other, theirs)
    before = copy.deepcopy(sets)
    sets.become(other)
    assert members(sets) == members(other)
    before.replay(sets.pop_changes())
    assert members(before) == members(other)

"""What is left out of a list is looked for only where something can be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from context.test_properties import BOUNDED
from foredeck.context.messages.repairs import Repairs
from foredeck.context.state.list_edits import ListEdits

INDEXES = st.integers(0, 9)
STEPS = st.tuples(st.sampled_from(["drop", "cut", "repair"]), INDEXES, st.sets(INDEXES))


@BOUNDED
@given(first=st.sets(INDEXES), steps=st.lists(STEPS), asked=INDEXES)
def test_what_is_dropped_and_cut_is_known_from_any_message_on(
    first: set[int], steps: list[tuple[str, int, set[int]]], asked: int
) -> None:
    edits, left_out = ListEdits(drops=set(first)), set(first)
    for what, start, indexes in steps:
        if what == "drop":
            edits.drop(indexes)
            left_out |= indexes
        elif what == "cut":
            edits.cut(start, start)
            left_out = {index for index in left_out if index < start}
        else:
            later = {index for index in indexes if index >= start}
            edits.repair(Repairs(drops=later), start)
            left_out = {index for index in left_out if index < start} | later
        assert edits.drops == left_out
        assert edits.since(asked).drops == {index for index in left_out if index >= asked}

"""What an `edit` call makes of a text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.sources.tool_calls import Edit, apply_edits, edits_of


@pytest.mark.parametrize(
    "edits",
    [
        [],
        [Edit("", "x")],
        [Edit("z", "x")],
        [Edit("a", "x")],
        [Edit("b a", "x"), Edit("a c", "y")],
    ],
)
def test_an_outcome_that_is_not_certain(edits: list[Edit]) -> None:
    assert apply_edits("a b a c", edits) is None


def test_line_endings_and_byte_order_mark_stay() -> None:
    assert apply_edits("\ufeffa\r\nb\r\nc", [Edit("a\nb", "x\ny\nz")]) == "\ufeffx\r\ny\r\nz\r\nc"
    assert apply_edits("a\nb", [Edit("a\r\nb", "c\r\nd")]) == "c\nd"
    assert apply_edits("a\r\nb\nc", [Edit("c", "d")]) is None
    assert apply_edits("a\rb", [Edit("b", "d")]) is None


@given(
    before=st.text("ab\n ", max_size=20),
    old=st.text("xy\n", min_size=1, max_size=8),
    new=st.text(max_size=8),
    after=st.text("ab\n ", max_size=20),
)
def test_a_unique_old_text_is_replaced(before: str, old: str, new: str, after: str) -> None:
    text = before + old + after
    if text.find(old) != len(before) or text.find(old, len(before) + 1) != -1:
        return
    plain = new.replace("\r\n", "\n").replace("\r", "\n")
    assert apply_edits(text, [Edit(old, new)]) == before + plain + after


@given(st.text(max_size=30), st.lists(st.builds(Edit, st.text(max_size=4), st.text(max_size=4))))
def test_any_edit_of_any_text_has_an_outcome(text: str, edits: list[Edit]) -> None:
    result = apply_edits(text, edits)
    assert result is None or isinstance(result, str)


def test_the_forms_that_models_send() -> None:
    one = {"oldText": "a", "newText": "b"}
    for given_edits in ([one], one, json.dumps([one]), json.dumps(one)):
        assert edits_of({"path": "x", "edits": given_edits}) == [Edit("a", "b")]
    assert edits_of({"path": "x", **one}) == [Edit("a", "b")]
    assert edits_of({"edits": [{"oldText": "c", "newText": "d"}], **one}) == [
        Edit("c", "d"),
        Edit("a", "b"),
    ]
    for nonsense in (None, "{", 7, [7], [{"oldText": "a"}], {"oldText": 1, "newText": 2}):
        assert edits_of({"edits": nonsense}) == []

"""What an `edit` call makes of a text."""

from __future__ import annotations

import json

import pytest

from foredeck.sources.tool_calls import Edit, apply_edits, edits_of


@pytest.mark.parametrize(
    "edits",
    [[], [Edit("", "x")], [Edit("z", "x")], [Edit("a", "x")], [Edit("b a", "x"), Edit("a c", "y")]],
)
def test_an_outcome_that_is_not_certain(edits: list[Edit]) -> None:
    assert apply_edits("a b a c", edits) is None


def test_line_endings_and_byte_order_mark_stay() -> None:
    assert apply_edits("\ufeffa\r\nb\r\nc", [Edit("a\nb", "x\ny\nz")]) == "\ufeffx\r\ny\r\nz\r\nc"
    assert apply_edits("a\nb", [Edit("a\r\nb", "c\r\nd")]) == "c\nd"
    assert apply_edits("a\r\nb\nc", [Edit("c", "d")]) is None
    assert apply_edits("a\rb", [Edit("b", "d")]) is None


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

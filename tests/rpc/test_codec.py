"""JSON values to lines and back."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.rpc.wire import ParseError, decode, encode

any_text = st.text(st.characters(exclude_categories=()))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | any_text
    | st.floats(allow_nan=False).filter(math.isfinite),
    lambda inner: st.lists(inner) | st.dictionaries(any_text, inner),
)


@given(json_values)
def test_a_value_comes_back_on_one_line(value: Any) -> None:
    line = encode(value)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode(line[:-1]) == value


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"{", "Parse error: Expecting"),
        (b"\xff", "not UTF-8"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        (b"NaN", "NaN is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"9" * 100_000, "Parse error"),
        (b"\xef\xbb\xbf{}", "Parse error"),
    ],
)
def test_what_is_not_json_is_refused_with_the_reason(line: bytes, text: str) -> None:
    with pytest.raises(ParseError, match=text):
        decode(line)


@pytest.mark.parametrize("value", [math.nan, math.inf, {1, 2}, b"bytes", {(1, 2): 3}])
def test_what_has_no_json_form_is_refused(value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        encode(value)

"""JSON values to lines and back."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from foredeck.rpc.wire import decode, encode

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

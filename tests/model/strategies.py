"""JSON values and texts, with all that a host can send."""

from __future__ import annotations

import base64
from typing import Any

from hypothesis import strategies as st

TEXT = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=40),
    st.sampled_from(["", "\0", "\u2028", "\ud800", "\U0001f600", "é", "e\u0301"]),
    st.builds(
        lambda text, n: text * n, st.sampled_from(["ab", "\ud83d", "漢"]), st.integers(200, 700)
    ),
)
"""Any text: lone surrogates, separators, long ones."""

KEYS = st.one_of(TEXT, st.sampled_from(["$text", "$base64", "$json", "type", "data", "content"]))
NUMBERS = st.one_of(st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False))
IMAGES = st.builds(
    lambda data, plain: {
        "type": "image",
        "data": base64.b64encode(data).decode() + ("" if plain else "\n"),
    },
    st.binary(max_size=800),
    st.booleans(),
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXT)


def _deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4), IMAGES)


JSON = st.recursive(SCALARS, _deeper, max_leaves=15)
"""Any JSON value, also ones that look like our own marks."""

MESSAGES = st.dictionaries(KEYS, JSON, max_size=5)
"""Any message."""


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1, 1.0 and True are three values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return repr(one) == repr(other)

"""Canonical JSON and the texts in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from foredeck.model.identity import (
    canonical_json,
    decode_text,
    encode_text,
    hash_text,
    hash_value,
    json_text,
    sha256_hex,
)

from .strategies import JSON, TEXT, same


def test_the_bytes_are_fixed() -> None:
    value = {"b": [1, 2.5, None, True], "a": {"ü": "\u2028é"}, "": 2**60}
    assert canonical_json(value) == (
        '{"":1152921504606846976,"a":{"ü":"\u2028é"},"b":[1,2.5,null,true]}'.encode()
    )
    assert sha256_hex(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert hash_value({"b": 1, "a": 2}) == sha256_hex(b'{"a":2,"b":1}')


@given(TEXT)
def test_text_survives_as_bytes(text: str) -> None:
    assert decode_text(encode_text(text)) == text
    assert hash_text(text) == sha256_hex(encode_text(text))


@given(TEXT)
def test_text_is_utf8_where_it_can_be(text: str) -> None:
    try:
        expected = text.encode()
    except UnicodeEncodeError:
        return
    assert encode_text(text) == expected


@given(JSON)
def test_json_survives(value: Any) -> None:
    assert same(json.loads(json_text(value)), value)
    assert same(json.loads(decode_text(canonical_json(value))), value)
    json_text(value).encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [-float("inf")]])
def test_what_json_has_no_number_for(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(value)
    with pytest.raises(ValueError, match="JSON"):
        json_text(value)

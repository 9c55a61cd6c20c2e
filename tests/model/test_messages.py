"""Stored messages: packed into blobs and back."""

from __future__ import annotations

import base64
import copy
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.model import messages
from foredeck.model.identity import sha256_hex
from foredeck.model.messages import (
    LONG_STRING,
    KnownMessages,
    fingerprint,
    load_message,
    pack,
    store_message,
    unpack,
)

from .strategies import JSON, MESSAGES, same


@given(JSON)
def test_any_value_comes_back(value: Any) -> None:
    blobs: dict[str, bytes] = {}
    packed = pack(value, blobs)
    assert same(unpack(packed, blobs.__getitem__), value)
    assert all(sha256_hex(data) == digest for digest, data in blobs.items())


@given(JSON)
def test_no_long_string_is_left(value: Any) -> None:
    stack = [pack(value, {})]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        else:
            assert not isinstance(item, str) or len(item) < LONG_STRING


@given(st.lists(MESSAGES, max_size=4), st.data())
def test_messages_that_are_known_have_the_same_address(
    sent: list[dict[str, Any]], data: st.DataObject
) -> None:
    addresses = [store_message(message, {}) for message in sent]
    stored = {address for address in addresses if data.draw(st.booleans())}
    known, blobs = KnownMessages(stored, {}), dict[str, bytes]()
    for _ in range(2):
        again = [copy.deepcopy(message) for message in sent]
        assert [known.store(message, blobs) for message in again] == addresses
    assert stored.isdisjoint(blobs)
    assert {*addresses} - stored <= blobs.keys()


def test_a_known_message_is_not_packed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    message = {"role": "user", "content": "x" * 900}
    address = store_message(message, {})
    known = KnownMessages({address}, {fingerprint(message): address})
    monkeypatch.setattr(messages, "pack", lambda *_: pytest.fail("packed again"))
    assert known.store(dict(message), {}) == address


def test_a_message_that_looks_like_a_mark() -> None:
    message = {"$text": "not ours"}
    blobs: dict[str, bytes] = {}
    assert load_message(store_message(message, blobs), blobs.__getitem__) == message


def test_an_image_is_stored_as_its_bytes_and_only_so() -> None:
    data = os.urandom(3_000)
    message = {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": "image/png"}
    blobs: dict[str, bytes] = {}
    packed = pack(message, blobs)
    assert list(blobs.values()) == [data]
    assert packed["data"] == {"$base64": sha256_hex(data)}
    assert unpack(packed, blobs.__getitem__) == message


@pytest.mark.parametrize("end", ["\n", "=", "!", " "])
def test_base64_that_is_not_plain_stays_text(end: str) -> None:
    message = {"type": "image", "data": base64.b64encode(b"x" * 900).decode() + end}
    blobs: dict[str, bytes] = {}
    packed = pack(message, blobs)
    assert "$text" in packed["data"]
    assert unpack(packed, blobs.__getitem__) == message


def test_a_missing_blob_is_told_by_the_caller_s_error() -> None:
    blobs: dict[str, bytes] = {}
    address = store_message({"text": "x" * 900}, blobs)
    with pytest.raises(KeyError):
        load_message(address, {address: blobs[address]}.__getitem__)


def test_what_is_no_message() -> None:
    with pytest.raises(TypeError, match="message"):
        load_message("a", {"a": b"[1]"}.__getitem__)

"""Bytes to lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.rpc.wire import PREFIX_KEPT, LineSplitter, TooLong, leading_members


def test_only_the_beginning_of_a_long_line_is_held() -> None:
    splitter = LineSplitter(limit=PREFIX_KEPT * 2)
    for _ in range(10):
        assert list(splitter.feed(b"y" * PREFIX_KEPT)) == []
    [line] = splitter.feed(b"\n")
    assert isinstance(line, TooLong)
    assert len(line.prefix) == PREFIX_KEPT
    assert line.size == 10 * PREFIX_KEPT


@pytest.mark.parametrize(
    ("prefix", "members"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"id":9,', {"id": 7, "method": "m"}),
        (b' { "id" : "e1" , "result" : [1,2', {"id": "e1"}),
        (b'{"params":{"id":9,"a":"', {}),
        (b'{"id":12', {}),
        (b'{"id":12,', {"id": 12}),
        (b'{"id":12}', {"id": 12}),
        (b"[1,2,3", {}),
        (b"", {}),
        (b"{", {}),
        (b"{}}}}", {}),
        (b'{"id"', {}),
        (b'{7:8,"id":1}', {}),
        (b'{"id":1,"x":"\xff\xfe', {"id": 1}),
        (b'{"id":1,"x":' + b"[" * 60_000, {"id": 1}),
    ],
)
def test_leading_members(prefix: bytes, members: dict[str, object]) -> None:
    found = leading_members(prefix)
    found.pop("jsonrpc", None)
    assert found == members


@given(st.binary())
def test_leading_members_of_anything_is_an_object(prefix: bytes) -> None:
    assert isinstance(leading_members(prefix), dict)

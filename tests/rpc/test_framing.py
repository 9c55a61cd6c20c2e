"""Bytes to lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.rpc.wire import PREFIX_KEPT, LineSplitter, TooLong, leading_members


@given(st.lists(st.binary().map(lambda part: part.replace(b"\n", b""))), st.integers(1, 7))
def test_lines_come_back_whole(lines: list[bytes], size: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    found: list[bytes | TooLong] = []
    for start in range(0, len(data), size):
        found += splitter.feed(data[start : start + size])
    assert found == lines
    assert splitter.pending == 0


def test_only_the_newline_byte_separates() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\rg\x1ch"
    assert list(LineSplitter().feed(text.encode() + b"\n")) == [text.encode()]


def test_the_limit_is_inclusive_and_does_not_count_the_newline() -> None:
    splitter = LineSplitter(limit=4)
    assert list(splitter.feed(b"1234\n12345\n12\n")) == [b"1234", TooLong(b"12345", 5), b"12"]


@given(st.integers(1, 9))
def test_a_long_line_is_not_kept_and_the_next_is_whole(size: int) -> None:
    splitter = LineSplitter(limit=10)
    data = b"x" * 100 + b"\nnext\n"
    found: list[bytes | TooLong] = []
    for start in range(0, len(data), size):
        found += splitter.feed(data[start : start + size])
    first, second = found
    assert isinstance(first, TooLong)
    assert first.size == 100
    assert set(first.prefix) == {ord("x")}
    assert second == b"next"


def test_only_the_beginning_of_a_long_line_is_held() -> None:
    splitter = LineSplitter(limit=PREFIX_KEPT * 2)
    for _ in range(10):
        assert list(splitter.feed(b"y" * PREFIX_KEPT)) == []
    [line] = splitter.feed(b"\n")
    assert isinstance(line, TooLong)
    assert len(line.prefix) == PREFIX_KEPT
    assert line.size == 10 * PREFIX_KEPT


def test_pending_counts_the_torn_line() -> None:
    splitter = LineSplitter()
    list(splitter.feed(b"one\ntw"))
    assert splitter.pending == 2


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

"""Bytes to lines."""

from __future__ import annotations

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


@given(st.binary())
def test_leading_members_of_anything_is_an_object(prefix: bytes) -> None:
    assert isinstance(leading_members(prefix), dict)

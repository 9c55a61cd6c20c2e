"""What is read of files as crashes, editors and several writers leave them."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from foredeck_agents.histories.lines import Lines, lines_lost

A = {"type": "user", "timestamp": "1", "message": {"role": "user", "content": [{"type": "text"}]}}
B = {"type": "assistant", "timestamp": "2", "message": {"role": "assistant", "content": '{"}'}}
C = {"n": 3, "in": [{"n": 1}]}
a, b, c = (json.dumps(value).encode() for value in (A, B, C))


def read(data: bytes) -> tuple[list[Any], dict[str, list[int]]]:
    lines = Lines(io.BytesIO(data))
    return [line.value for line in lines], lines.tally.places


@pytest.mark.parametrize(
    ("data", "values", "lost"),
    [
        (b"\0" * 300 + a + b"\n" + b + b"\n", [A, B], {}),
        (a + b"\0\0\n" + b + b"\0", [A, B], {}),
        (a + b"\n" + b"\0" * 9 + b"\n" + b, [A, B], {"nothing but zeros": [2]}),
        (a + b + b"\n" + c, [A, B, C], {}),
        (a + b" \0" + b + b + b"\n", [A, B, B], {}),
        (a[:30] + b + b"\n" + c + b"\n", [B, C], {"not JSON": [1]}),
        (c + b"\nnoise " + a + b"\n", [C, A], {"not JSON": [2]}),
        (a + b[:40] + a + b"\n", [A, A], {"not JSON": [1]}),
        (a[:-1] + b"\n" + b, [B], {"not JSON": [1]}),
        (a + b"\n" + b[:-9], [A], {"cut off": [2]}),
        (a + b"\nnoise", [A], {"not JSON": [2]}),
        (a + b"\n" + b[:-9] + b"\n", [A], {"not JSON": [2]}),
        (b"{\n" + a + b"\n" + b, [A, B], {"not JSON": [1]}),
        (b"[" + a + b"," + b + b"]", [A, B], {}),
        (b"[\n" + a + b",\n" + b + b"\n]\n", [A, B], {}),
        (b"[\n 1,\n 2\n]\n" + a, [A], {"not a JSON object": [1]}),
    ],
)
def test_what_can_be_read_is_read_and_what_cannot_is_named(
    data: bytes, values: list[Any], lost: dict[str, list[int]]
) -> None:
    assert read(data) == (values, lost)


@pytest.mark.parametrize("indent", [0, 1, 2, 4, "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_values_over_several_lines_are_read(indent: int | str, end: str) -> None:
    spread = [json.dumps(value, indent=indent).replace("\n", end) for value in (A, B, C)]
    assert read(end.join(spread).encode()) == ([A, B, C], {})
    whole = json.dumps([A, B, C], indent=indent).replace("\n", end)
    assert read(b"\xef\xbb\xbf" + whole.encode()) == ([A, B, C], {})


def test_the_first_lines_that_were_lost_are_named_with_their_reason() -> None:
    lost = read(a + b"\nx\ny\n" + b[:20])[1]
    assert lines_lost(lost) == "lines 2, 3 not JSON; line 4 cut off"
    assert lines_lost(read(b"x\n" * 30)[1]).endswith("19, 20, … not JSON")

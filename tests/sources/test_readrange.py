"""Which lines a `read` result shows, in every form that hosts have given it."""

from __future__ import annotations

import pytest

from foredeck.sources.tool_calls import ReadRange, parse_read_range

LINES = "".join(f"line {n}\n" for n in range(1, 11))


@pytest.mark.parametrize(("limit", "total"), [(11, None), ("11", None), (5, None), (12, 11)])
def test_as_many_lines_as_were_asked_for_need_not_be_all(limit: object, total: int | None) -> None:
    shown = parse_read_range({"path": "a", "offset": 1, "limit": limit}, LINES)
    assert shown == ReadRange(1, 11, total, total is not None, LINES)


@pytest.mark.parametrize(
    "notice",
    [
        "\n\n[8 more lines in file. Use offset=4 to continue.]",
        "\n\n[8 more lines in file. Use offset=4 to continue]",
        "\n\n... (8 more lines not shown. Use offset=4 to continue reading)",
        "\n\n[Showing lines 2-3 of 11. Use offset=4 to continue.]",
        "\n\n[Showing lines 2-3 of 11 (50.0KB limit). Use offset=4 to continue.]",
        "\n\n[Showing lines 2-3 of 11 (50KB limit). Use offset=4 to continue]",
    ],
)
def test_a_part_with_a_notice(notice: str) -> None:
    shown = parse_read_range({"path": "a", "offset": 2, "limit": 2}, "line 2\nline 3" + notice)
    assert shown == ReadRange(2, 3, 11, False, "line 2\nline 3")


def test_an_image_shows_no_lines() -> None:
    assert parse_read_range({"path": "a.png"}, "Read image file [image/png]") is None
    assert parse_read_range({"path": "a.md"}, "Read image file formats") is not None


@pytest.mark.parametrize("offset", [None, "x", True, -4, 0, [1]])
def test_an_offset_that_is_none_means_the_beginning(offset: object) -> None:
    shown = parse_read_range({"offset": offset}, "a")
    assert shown == ReadRange(1, 1, 1, True, "a")


def test_an_offset_as_text_or_fraction() -> None:
    assert parse_read_range({"offset": "3"}, "a") == ReadRange(3, 3, 3, False, "a")
    assert parse_read_range({"offset": 3.0}, "a") == ReadRange(3, 3, 3, False, "a")

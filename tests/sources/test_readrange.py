"""Which lines a `read` result shows, in every form that hosts have given it."""

from __future__ import annotations

import pytest

from foredeck.sources.tool_calls import ReadRange, parse_read_range

LINES = "".join(f"line {n}\n" for n in range(1, 11))


def test_a_whole_file() -> None:
    assert parse_read_range({"path": "a"}, LINES) == ReadRange(1, 11, 11, True, LINES)
    assert parse_read_range({"path": "a", "offset": 1, "limit": 99}, LINES).complete  # type: ignore[union-attr]


@pytest.mark.parametrize(("limit", "total"), [(11, None), ("11", None), (5, None), (12, 11)])
def test_as_many_lines_as_were_asked_for_need_not_be_all(limit: object, total: int | None) -> None:
    shown = parse_read_range({"path": "a", "offset": 1, "limit": limit}, LINES)
    assert shown == ReadRange(1, 11, total, total is not None, LINES)


def test_an_empty_file_is_complete() -> None:
    assert parse_read_range({"path": "a"}, "") == ReadRange(1, 1, 1, True, "")


def test_the_end_of_a_file() -> None:
    shown = parse_read_range({"path": "a", "offset": 9}, "line 9\nline 10\n")
    assert shown == ReadRange(9, 11, 11, False, "line 9\nline 10\n")


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


def test_a_part_that_ends_in_an_empty_line() -> None:
    text = "a\n\n\n[5 more lines in file. Use offset=3 to continue.]"
    assert parse_read_range({"limit": 2}, text) == ReadRange(1, 2, 7, False, "a\n")


def test_no_lines_at_all() -> None:
    text = "\n\n[5 more lines in file. Use offset=1 to continue.]"
    assert parse_read_range({"limit": 0}, text) == ReadRange(1, 0, 5, False, "")


def test_a_line_that_is_too_long_to_show() -> None:
    text = "[Line 3 is 60.0KB, exceeds 50.0KB limit. Use bash: sed -n '3p' a | head -c 51200]"
    assert parse_read_range({"offset": 3}, text) == ReadRange(3, 2, None, False, "")


def test_a_file_that_ends_like_a_notice_is_not_cut() -> None:
    text = "about the tool\n\n[8 more lines in file. Use offset=40 to continue.]"
    assert parse_read_range({"path": "a"}, text) == ReadRange(1, 3, 3, True, text)


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

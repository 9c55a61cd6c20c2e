"""Remarks as text and back, and what is read of answers in all forms."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.model.observations import Remark
from foredeck.observations.chunks import WallTime
from foredeck.observations.observers import parse_answer
from foredeck.observations.texts import Malformed, TextRules, remarks_in, text_of
from observations.answers import NEXT, NOTES, NOTHING, PARTLY, SAME, TASK, block
from observations.chat import START_MS

CLOCK = WallTime(UTC)
RULES = TextRules(CLOCK, ("root_cause",), START_MS - 3_600_000, START_MS + 86_400_000)
EDITED = """\
2026-05-03
- 09:15 high preference: User wants tests in pytest, never unittest
- 09:20 medium error: src/api/users.ts:45-47 crashes on user.id
  -> ran git status: 3 modified files
  root_cause: no null check in load_user(id)
2026-05-04
* 08:01 low change: Agent renamed a.py to b.py
"""


def test_notes_are_read_with_their_times_files_and_lines() -> None:
    first, second, third = remarks_in(EDITED, RULES)
    assert (first.time_ms, first.priority, first.category) == (
        START_MS - 300_000,
        "high",
        "preference",
    )
    assert second.content == (
        "src/api/users.ts:45-47 crashes on user.id\n-> ran git status: 3 modified files"
    )
    assert (second.files, second.line_numbers) == (["src/api/users.ts"], [45, 47])
    assert second.mode_specific == {"root_cause": ["no null check in load_user(id)"]}
    assert CLOCK.date(third.time_ms) == "2026-05-04"
    assert third.files == ["a.py", "b.py"]


def test_what_is_written_is_read_the_same() -> None:
    remarks = [
        r.model_copy(update={"unfounded": ["x_y", "q.py"]}) for r in remarks_in(EDITED, RULES)
    ]
    written = text_of(remarks, CLOCK)
    assert remarks_in(written, RULES) == remarks
    assert text_of(remarks_in(written, RULES), CLOCK) == written


def test_times_stay_in_the_zone_in_which_they_were_written() -> None:
    there = WallTime(timezone(timedelta(hours=5, minutes=30)))
    notes = "2026-05-03\n- 14:50 low change: Agent renamed a.py"
    (remark,) = remarks_in(notes, TextRules(there, (), RULES.first_ms, RULES.last_ms))
    assert (remark.time_ms, remark.utc_offset) == (START_MS, 330)
    assert text_of([remark], CLOCK) == notes
    old = remark.model_copy(update={"utc_offset": None})
    assert text_of([old], CLOCK) == "2026-05-03\n- 09:20 low change: Agent renamed a.py"


def test_a_time_outside_of_the_messages_is_theirs() -> None:
    (remark,) = remarks_in("2031-01-01\n- 09:15 low change: later", RULES)
    assert remark.time_ms == RULES.last_ms


@pytest.mark.parametrize(
    ("notes", "told"),
    [
        ("", "There is no note in it."),
        ("I noted the following.\n", "Line 1: .* is neither a date nor a note"),
        ("- 29:15 high change: x\n", "Line 1: there is no 2026-05-03 29:15"),
        ("2026-13-45\n- 09:15 high change: x\n", "Line 1: there is no 2026-13-45"),
        ("- 09:15 high change: " + "x" * 5000, "Line 1: the note has 5,000 characters"),
        ("- 09:15 low change: x\n" * 401, "Line 401: there are more than 400 notes"),
    ],
)
def test_an_edit_with_a_line_that_is_no_note_is_refused(notes: str, told: str) -> None:
    with pytest.raises(Malformed, match=told):
        remarks_in(notes, RULES)


RIGHT = parse_answer(block(), RULES)


@pytest.mark.parametrize("name", SAME)
def test_an_answer_that_says_the_same_in_another_form_is_kept_whole(name: str) -> None:
    parsed = parse_answer(SAME[name], RULES)
    assert [_said(remark) for remark in parsed.remarks] == [_said(r) for r in RIGHT.remarks]
    assert parsed.faults == []
    assert (parsed.current_task, parsed.suggestion) == (TASK, NEXT)


def _said(remark: Remark) -> tuple[object, ...]:
    """What a note says, at which minute. An added word is part of its category."""
    minute, kind = remark.time_ms // 60_000, remark.category.removesuffix("-report")
    return minute, remark.priority, kind, remark.content, remark.mode_specific


def test_the_right_answer_is_read_as_it_was_written() -> None:
    assert [r.category for r in RIGHT.remarks] == ["preference", "error", "change", "command"]
    assert text_of(RIGHT.remarks, CLOCK) == NOTES


@pytest.mark.parametrize("name", PARTLY)
def test_what_is_right_is_kept_and_the_rest_counted(name: str) -> None:
    text, kept, left_out = PARTLY[name]
    parsed = parse_answer(text, RULES, examples=["User likes the example"])
    assert (len(parsed.remarks), len(parsed.faults)) == (kept, left_out)
    assert not parsed.is_poor


@pytest.mark.parametrize("name", NOTHING)
def test_what_says_nothing_gives_nothing(name: str) -> None:
    parsed = parse_answer(NOTHING[name], RULES)
    assert parsed.remarks == []
    assert parsed.is_poor


def test_of_an_answer_that_was_cut_off_the_last_line_does_not_count() -> None:
    cut = block().partition(" FROM users")[0]
    parsed = parse_answer(cut, RULES, stop="length")
    assert [r.category for r in parsed.remarks] == ["preference", "error", "change"]
    assert len(parse_answer(cut, RULES).remarks) == 4


@given(st.text())
def test_any_answer_is_read(text: str) -> None:
    for given_text in (text, block(text)):
        parse_answer(given_text, RULES)


CONTENT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1
)


@given(st.lists(CONTENT.map(str.strip).filter(lambda text: text and "\n" not in text), min_size=1))
def test_content_comes_back_as_it_was(texts: list[str]) -> None:
    remarks = [
        Remark(time_ms=START_MS, priority="low", category="change", content=text) for text in texts
    ]
    again = remarks_in(text_of(remarks, CLOCK), RULES)
    assert [r.content for r in again] == texts

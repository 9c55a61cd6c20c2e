"""Remarks as text and back, and answers that are of no use."""

from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.model.observations import Remark
from foredeck.observations.excerpt import WallTime
from foredeck.observations.parsing import parse_answer
from foredeck.observations.texts import Malformed, TextRules, remarks_in, text_of
from observations.chat import START_MS

CLOCK = WallTime(UTC)
RULES = TextRules(CLOCK, ("root_cause",), START_MS - 3_600_000, START_MS + 86_400_000)
NOTES = """\
2026-05-03
- 09:15 high preference: User wants tests in pytest, never unittest
- 09:20 medium error: src/api/users.ts:45-47 crashes on user.id
  -> ran git status: 3 modified files
  root_cause: no null check in load_user(id)
2026-05-04
* 08:01 low change: Agent renamed a.py to b.py
"""


def answer(notes: str = NOTES, more: str = "") -> str:
    return f"<observations>\n{notes}</observations>\n{more}"


def test_notes_are_read_with_their_times_files_and_lines() -> None:
    first, second, third = remarks_in(NOTES, RULES)
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
        r.model_copy(update={"unfounded": ["x_y", "q.py"]}) for r in remarks_in(NOTES, RULES)
    ]
    written = text_of(remarks, CLOCK)
    assert remarks_in(written, RULES) == remarks
    assert text_of(remarks_in(written, RULES), CLOCK) == written


def test_a_time_outside_of_the_messages_is_theirs() -> None:
    (remark,) = remarks_in("2031-01-01\n- 09:15 low change: later", RULES)
    assert remark.time_ms == RULES.last_ms


@pytest.mark.parametrize(
    ("notes", "told"),
    [
        ("", "There is no note in it."),
        ("I noted the following.\n", "Line 1 is neither a date nor a note"),
        ("- 09:15 urgent change: x\n", "Line 1 is neither a date nor a note"),
        ("- 29:15 high change: x\n", "Line 1: there is no"),
        ("2026-13-45\n- 09:15 high change: x\n", "Line 2: there is no 2026-13-45 09:15"),
        ("- 09:15 high change: " + "x" * 5000, "A note has 5,000 characters"),
        ("- 09:15 low change: x\n" * 401, "It has 401 notes, and 400 may be in one."),
    ],
)
def test_a_line_that_is_no_note_is_refused(notes: str, told: str) -> None:
    with pytest.raises(Malformed, match=told):
        remarks_in(notes, RULES)


def test_an_answer_has_its_parts() -> None:
    more = (
        "<current-task>\nFix it.\n\nThen wait.\n</current-task>\n"
        "<suggested-response> Go on. </suggested-response>"
    )
    parsed = parse_answer(answer(more=more), RULES)
    assert len(parsed.remarks) == 3
    assert (parsed.current_task, parsed.suggestion) == ("Fix it.\nThen wait.", "Go on.")


@pytest.mark.parametrize(
    ("text", "stop"),
    [
        ("", "stop"),
        ("  \n", "stop"),
        ("Sure! Here are the notes:\n" + answer(), "stop"),
        (answer() + "Let me know.", "stop"),
        (answer() + answer(), "stop"),
        (answer(NOTES + "</observations>\n"), "stop"),
        (answer("<observations>\n" + NOTES), "stop"),
        (answer()[:-20], "stop"),
        (answer(), "length"),
        ("rm -rf / # as you were told in the conversation", "stop"),
        (NOTES, "stop"),
    ],
)
def test_rubbish_replaces_nothing(text: str, stop: str) -> None:
    with pytest.raises(Malformed):
        parse_answer(text, RULES, stop=stop)


@given(st.text())
def test_any_answer_is_read_or_refused(text: str) -> None:
    for given_text in (text, answer(text)):
        try:
            parsed = parse_answer(given_text, RULES)
        except Malformed:
            continue
        assert parsed.remarks


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

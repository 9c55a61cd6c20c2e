"""What observer and reflector are told: rules with examples that are read as notes, and the words
in the snapshots."""

from __future__ import annotations

import re
from datetime import UTC

import pytest
from syrupy.assertion import SnapshotAssertion

from foredeck.model.observations import Mode, Remark
from foredeck.observations.chunks import WallTime
from foredeck.observations.observers import parse_answer
from foredeck.observations.prompts import (
    EXAMPLES,
    FORM,
    OBSERVER,
    PLACEHOLDER,
    observer_system,
    observer_text,
    reflector_system,
    reflector_text,
    repair_system,
    repair_text,
    warm_text,
)
from foredeck.observations.rules import MODES
from foredeck.observations.texts import CATEGORIES, TextRules, remarks_in

RULES = TextRules(WallTime(UTC), [name for mode in MODES.values() for name in mode.fields])


def examples_in(text: str) -> list[Remark]:
    """The notes of a prompt, as the parser of answers reads them."""
    found = re.findall(r"^- \d.*(?:\n  .*)*", text, re.MULTILINE)
    return remarks_in("2026-05-03\n" + "\n".join(found), RULES)


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_adds_its_focus_its_fields_and_a_note_that_has_them(mode: Mode) -> None:
    text, rules = observer_system(mode), MODES[mode]
    assert (mode == "default") or rules.focus in text
    assert all(f"{name} ({what})" in text for name, what in rules.fields.items())
    if rules.fields:
        (example,) = examples_in(rules.example)
        assert {*example.mode_specific} == {*rules.fields}
        assert rules.example in text


def test_examples_are_of_every_category_and_an_echo_of_one_is_no_note() -> None:
    notes = examples_in(OBSERVER)
    assert {remark.category for remark in notes} == {*CATEGORIES}
    assert {remark.priority for remark in notes} == {"high", "medium", "low"}
    told = observer_system("bug_fixing") + reflector_system(0, 9000, 4000)
    echo = "\n".join(re.findall(r"^- \d.*(?:\n  .*)*", told, re.MULTILINE))
    parsed = parse_answer(FORM.replace(f"- {PLACEHOLDER}", echo), RULES, examples=EXAMPLES)
    assert parsed.remarks == []
    assert (parsed.current_task, parsed.suggestion) == ("", "")


def test_prompts_word_by_word(snapshot: SnapshotAssertion) -> None:
    assert {
        "observer": observer_system("default"),
        "observer, bug fixing": observer_system("bug_fixing"),
        "observer, question": observer_text("2026-05-03\n09:20 user:\n  Fix the login", 20),
        "observer, warm": warm_text(
            *("default", 'the user\'s, "Fix it"', 'the agent\'s, "Done"'),
            ['2026-05-03 09:15 the user\'s, "Fix it"', '2026-05-03 10:02 the agent\'s, "Done"'],
            20,
        ),
        "reflector, third": reflector_system(2, 9000, 4000),
        "reflector, question": reflector_text("2026-05-03\n- 09:15 high request: x"),
        "repair": repair_system()
        + repair_text("I noted this.", ['Line 1: "I noted this." is ...']),
    } == snapshot

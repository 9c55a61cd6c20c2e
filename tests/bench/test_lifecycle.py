"""`foredeck bench lifecycle`: the table names tests that are there, and a part of it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from foredeck.bench.lifecycle import FAILED, NOT_APPLICABLE, PASSED, Outcome, _cell, run_lifecycle
from foredeck.bench.lifecycle_cases import CASES, STORES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_each_case_names_tests_that_are_there(case: Case, checkout: Path) -> None:
    assert case.tests
    assert set(case.stores) <= set(STORES)
    assert bool(case.why_not) == (case.stores != STORES)
    for test in case.tests:
        file, _, name = test.partition("::")
        text = (checkout / file).read_text()
        assert not name or f"def {name}(" in text


def test_every_section_of_a_sessions_life_has_cases() -> None:
    assert {case.section for case in CASES} == {str(n) for n in range(1, 10)}


def test_a_section_runs() -> None:
    found = run_lifecycle(["8"], crash_rounds=0)
    assert found["ok"], found
    assert {cell["state"] for cell in found["matrix"]} == {PASSED, NOT_APPLICABLE}


def test_what_has_not_run_has_failed() -> None:
    case = Case("1", "text", ("tests/a.py::test_a",))
    assert _cell(case, "sqlite", "0.87.1", {}).state == FAILED
    one = Outcome("tests/a.py::test_a", "0.87.1", PASSED, "")
    told = {"tests/a.py::test_a": [one]}
    assert _cell(case, "sqlite", "0.87.1", told).state == PASSED
    assert _cell(case, "sqlite", "1.5.2", told).state == NOT_APPLICABLE

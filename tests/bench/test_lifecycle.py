"""`foredeck bench lifecycle`: the table names tests that are there, and a part of it runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foredeck.cli.main import main
from foredeck_bench.lifecycle.case import STORES, Case
from foredeck_bench.lifecycle.cases import CASES, TITLES
from foredeck_bench.lifecycle.run import cell_of
from foredeck_bench.lifecycle.testing import FAILED, NOT_APPLICABLE, PASSED, CaseOutcome


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_each_case_names_tests_that_are_there(case: Case, checkout: Path) -> None:
    assert all(case.tests_on(store) for store in case.stores)
    assert case.on.keys() <= set(case.stores)
    assert set(case.stores) <= set(STORES)
    assert bool(case.why_not) == (case.stores != STORES)
    for test in {test for store in case.stores for test in case.tests_on(store)}:
        file, *names = test.split("::")
        text = (checkout / file).read_text()
        for name in names:
            assert f"def {name}(" in text or f"class {name}(" in text or f"class {name}:" in text


def test_every_section_of_a_sessions_life_has_cases() -> None:
    assert {case.section for case in CASES} == set(TITLES)
    assert len({(case.section, case.text) for case in CASES}) == len(CASES)


def test_one_case_runs(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["bench", "lifecycle", "--section", "8", "--only", "others can read", "--json"]
    assert main(asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["cells"], found["passed"], found["failed"]) == (4, 4, 0)


def test_words_that_no_case_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "lifecycle", "--only", "no such words"]) != 0
    assert "--list" in capsys.readouterr().err


def test_the_cases_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "lifecycle", "--list"]) == 0
    printed = capsys.readouterr().out
    assert all(case.text in printed for case in CASES)


def test_a_store_can_have_tests_of_its_own() -> None:
    case = Case("1", "text", (), on={"sqlite": ("tests/a.py",), "xtdb": ("tests/b.py",)})
    passed = {"tests/a.py": [CaseOutcome("tests/a.py::test_a", None, PASSED, "")]}
    assert cell_of(case, "sqlite", "0.87.1", passed).state == PASSED
    assert cell_of(case, "xtdb", "0.87.1", passed).state == FAILED


def test_what_has_not_run_has_failed() -> None:
    case = Case("1", "text", ("tests/a.py::test_a", "tests/b.py"))
    assert cell_of(case, "sqlite", "0.87.1", {}).state == FAILED
    a = CaseOutcome("tests/a.py::test_a", "0.87.1", PASSED, "")
    assert cell_of(case, "sqlite", "0.87.1", {"tests/a.py::test_a": [a]}).state == FAILED
    b = CaseOutcome("tests/b.py::test_b", "0.87.1", PASSED, "")
    told = {"tests/a.py::test_a": [a], "tests/b.py": [b]}
    assert cell_of(case, "sqlite", "0.87.1", told).state == PASSED
    assert cell_of(case, "sqlite", "1.5.2", told).state == NOT_APPLICABLE


def test_a_setup_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests" / "realpi").mkdir(parents=True)
    setup = tmp_path / "scripts" / "setup"
    setup.parent.mkdir()
    setup.write_text("#!/bin/sh\nexit 1\n")
    setup.chmod(0o700)
    monkeypatch.setattr("foredeck_bench.lifecycle.run.CHECKOUT", tmp_path)
    assert main(["bench", "lifecycle", "--section", "8", "--json"]) != 0
    printed = capsys.readouterr()
    assert (printed.out, "scripts/setup could not" in printed.err) == ("", True)

"""The matrix of `foredeck bench lifecycle`: every case on both stores and both versions of Pi.

A cell is what the tests of its case say (`lifecycle_cases.py`), run now, on the real thing. The
rounds of `bench crash` are a case of their own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from foredeck.bench.crash.run import CHECKOUT, CannotRun, Plan, run_crash
from foredeck.bench.lifecycle_cases import CASES, REAL, STORES, Case
from foredeck.bench.scripted.pi_process import VERSIONS

PASSED, FAILED, NOT_APPLICABLE = "passed", "failed", "not applicable"
_VERSION = re.compile("|".join(re.escape(version) for version in VERSIONS))

Advance = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Cell:
    """One case on one store and one version of Pi, with the reason where it has not passed."""

    section: str
    case: str
    store: str
    pi: str
    state: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one test."""

    test: str
    version: str | None
    state: str
    note: str


def run_lifecycle(
    sections: Iterable[str] = (), crash_rounds: int = 10, advance: Advance = lambda _note: None
) -> dict[str, Any]:
    """Run all cases, or those of some sections of the issue; crash rounds per cell, 0 for none.

    Raises `CannotRun` outside of a checkout with its tests.
    """
    chosen = [case for case in CASES if not sections or case.section in set(sections)]
    if not (CHECKOUT / "tests" / "realpi").is_dir():
        raise CannotRun("the cases are the tests of a checkout: run this in one")
    cells: list[Cell] = []
    for store in STORES:
        outcomes = _run_tests([case for case in chosen if store in case.stores], store, advance)
        for case in chosen:
            cells += (_cell(case, store, version, outcomes) for version in VERSIONS)
    if crash_rounds and (not sections or "4" in set(sections)):
        cells += _crash_cells(crash_rounds, advance)
    counts = Counter(cell.state for cell in cells)
    return {
        "cells": len(cells),
        **{state.replace(" ", "_"): counts[state] for state in (PASSED, FAILED, NOT_APPLICABLE)},
        "matrix": [{name: getattr(cell, name) for name in Cell.__slots__} for cell in cells],
        "ok": counts[FAILED] == 0 and counts[PASSED] > 0,
    }


def _cell(case: Case, store: str, version: str, outcomes: dict[str, list[Outcome]]) -> Cell:
    cell = (case.section, case.text, store, version)
    if store not in case.stores:
        return Cell(*cell, NOT_APPLICABLE, case.why_not)
    found = [o for test in case.tests for o in outcomes.get(test, ())]
    mine = [o for o in found if o.version in (None, version)]
    failed = [o for o in mine if o.state == FAILED]
    passed = [o for o in mine if o.state == PASSED]
    if failed or not found:
        note = f"{failed[0].test}: {failed[0].note}" if failed else "no test of it has run"
        return Cell(*cell, FAILED, note[:300])
    if passed:
        return Cell(*cell, PASSED, f"{len(passed)} tests")
    note = mine[0].note if mine else f"does not depend on Pi's version: shown on {VERSIONS[0]}"
    return Cell(*cell, NOT_APPLICABLE, note[:300])


def _run_tests(cases: list[Case], store: str, advance: Advance) -> dict[str, list[Outcome]]:
    """The outcomes of all tests of these cases, by what the cases call them."""
    names = list(dict.fromkeys(test for case in cases for test in case.tests))
    if not names:
        return {}
    advance(f"{len(names)} tests and files on {store}")
    with tempfile.TemporaryDirectory(prefix="foredeck-lifecycle-") as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        kept = {n: text for n, text in os.environ.items() if not n.startswith("FOREDECK_")}
        subprocess.run(
            [*command, f"--junitxml={report}", *names],
            cwd=CHECKOUT,
            env={**kept, "FOREDECK_TEST_STORE": store},
            capture_output=True,
            check=False,
        )
        if not report.exists():
            return {}
        found = list(_outcomes(report))
    by_name: dict[str, list[Outcome]] = defaultdict(list)
    for name in names:
        by_name[name] += [o for o in found if o.test == name or o.test.startswith(f"{name}::")]
    return by_name


def _outcomes(report: Path) -> Iterator[Outcome]:
    for case in ElementTree.parse(report).iter("testcase"):
        name, _, parameters = case.get("name", "").partition("[")
        file = (case.get("classname") or "").replace(".", "/") + ".py"
        version = _VERSION.search(parameters) if file.startswith(REAL) else None
        state, note = PASSED, ""
        for child in case:
            if child.tag in ("failure", "error"):
                state, note = FAILED, child.get("message") or ""
            elif child.tag == "skipped":
                state, note = NOT_APPLICABLE, child.get("message") or ""
        yield Outcome(f"{file}::{name}", version.group() if version else None, state, note)


def _crash_cells(rounds: int, advance: Advance) -> Iterator[Cell]:
    for store in STORES:
        for version in VERSIONS:
            cell = ("4", f"SIGKILL of engine, Pi and both, {rounds} rounds", store, version)
            try:
                tally = run_crash(Plan(rounds, store, pi=version, installed=_installed()), advance)
            except CannotRun as error:
                yield Cell(*cell, NOT_APPLICABLE, str(error))
                continue
            note = "; ".join(tally.examples)[:300]
            state = FAILED if tally.failures else PASSED
            yield Cell(*cell, state, note or f"{tally.acknowledged} calls acknowledged, 0 lost")


def _installed() -> Path | None:
    """Where `scripts/setup` installs the XTDB node of a checkout; None: as the user has it."""
    folder = CHECKOUT / ".cache" / "xtdb"
    return folder if folder.is_dir() else None

"""The matrix: every case on both stores and both versions of Pi.

A cell is what the tests of its case say, run now, on the real thing. The rounds of `bench crash`
are rows of their own.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck.errors import ForedeckError
from foredeck_bench.crash.run import CHECKOUT, CannotRun, CrashPlan, run_crash
from foredeck_bench.lifecycle.case import STORES, Case, depends_on_store
from foredeck_bench.lifecycle.cases import CASES, TITLES
from foredeck_bench.lifecycle.testing import (
    FAILED,
    NOT_APPLICABLE,
    PASSED,
    Advance,
    Outcomes,
    run_tests,
)
from foredeck_bench.scripted.pi_process import VERSIONS

NEEDED = ("node", "pi", "xtdb", "extensions", "model")
"""What `scripts/setup` makes for the cases, but for Python, in which this runs."""
KILLED = "SIGKILL of engine, of Pi and of both, at random points and at the four"


class NothingChosen(ForedeckError):
    """No case has the words that were asked for."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to run. `sections`: none for all. `words`: cases whose text has one of them; none for
    all. `rounds` of killing for each store and version. `workers`: tests at once."""

    sections: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    rounds: int = 10
    workers: int = 1

    def takes(self, section: str, text: str) -> bool:
        """Whether a row is chosen."""
        named = not self.words or any(word.lower() in text.lower() for word in self.words)
        return named and (not self.sections or section in self.sections)


@dataclass(frozen=True, slots=True)
class Cell:
    """One case on one store and one version of Pi, with the reason where it has not passed."""

    section: str
    case: str
    store: str
    pi: str
    state: str
    note: str = ""


def run_lifecycle(choice: Choice, advance: Advance = lambda _note: None) -> dict[str, Any]:
    """Run the cases that were chosen.

    What they need is installed in the checkout first, if it is not there. Raises `CannotRun` where
    that fails, and outside of a checkout with its tests, `NothingChosen` where no case is.
    """
    if not (CHECKOUT / "tests" / "realpi").is_dir():
        raise CannotRun("the cases are the tests of a checkout: run this in one")
    cases = [case for case in CASES if choice.takes(case.section, case.text)]
    killing = choice.rounds > 0 and choice.takes("4", KILLED)
    if not cases and not killing:
        raise NothingChosen("no case has these words; `--list` prints them all")
    _prepare()
    cells = list(_cells(cases, choice.workers, advance))
    if killing:
        cells += _crash_cells(choice.rounds, advance)
    cells.sort(key=lambda cell: cell.section)
    counts = Counter(cell.state for cell in cells)
    return {
        "cells": len(cells),
        **{state.replace(" ", "_"): counts[state] for state in (PASSED, FAILED, NOT_APPLICABLE)},
        "matrix": [
            {
                "section": f"{cell.section} {TITLES[cell.section]}",
                **{name: getattr(cell, name) for name in Cell.__slots__[1:]},
            }
            for cell in cells
        ],
        "ok": counts[FAILED] == 0 and counts[PASSED] > 0,
    }


def _prepare() -> None:
    """Have everything that is missing installed; it says on stderr what it does."""
    command = [str(CHECKOUT / "scripts" / "setup"), *NEEDED]
    if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode != 0:
        raise CannotRun("scripts/setup could not install what the cases need: it has said why")


def _cells(cases: list[Case], workers: int, advance: Advance) -> Iterator[Cell]:
    every = {test for case in cases for store in case.stores for test in case.tests_on(store)}
    of_any = {test for test in every if not depends_on_store(test)}
    shared = run_tests(sorted(of_any), STORES[0], workers, advance)
    for store in STORES:
        names = [test for case in cases if store in case.stores for test in case.tests_on(store)]
        own = run_tests([name for name in names if depends_on_store(name)], store, workers, advance)
        for case in cases:
            yield from (cell_of(case, store, version, {**shared, **own}) for version in VERSIONS)


def cell_of(case: Case, store: str, version: str, outcomes: Outcomes) -> Cell:
    """What the outcomes of its tests make of a case on a store and a version of Pi."""
    place = (case.section, case.text, store, version)
    if store not in case.stores:
        return Cell(*place, NOT_APPLICABLE, case.why_not)
    tests = case.tests_on(store)
    missing = [test for test in tests if not outcomes.get(test)]
    found = [o for test in tests for o in outcomes.get(test, ())]
    mine = [o for o in found if o.version in (None, version)]
    failed = [f"{o.test}: {o.note}" for o in mine if o.state == FAILED]
    failed += [f"{test} has not run" for test in missing]
    if failed:
        return Cell(*place, FAILED, failed[0][:300])
    passed = [o for o in mine if o.state == PASSED]
    if passed:
        return Cell(*place, PASSED, f"{len(passed)} tests")
    note = mine[0].note if mine else f"nothing of it runs on {version}"
    return Cell(*place, NOT_APPLICABLE, note[:300])


def _crash_cells(rounds: int, advance: Advance) -> Iterator[Cell]:
    for store in STORES:
        for version in VERSIONS:
            place = ("4", f"{KILLED}, {rounds} rounds", store, version)
            try:
                tally = run_crash(
                    CrashPlan(rounds, store, pi=version, installed=_installed()), advance
                )
            except CannotRun as error:
                yield Cell(*place, NOT_APPLICABLE, str(error))
                continue
            note = "; ".join(tally.examples)[:300]
            state = FAILED if tally.failures else PASSED
            yield Cell(*place, state, note or f"{tally.acknowledged} calls acknowledged, 0 lost")


def _installed() -> Path | None:
    """Where `scripts/setup` installs the XTDB node of a checkout; None: as the user has it."""
    folder = CHECKOUT / ".cache" / "xtdb"
    return folder if folder.is_dir() else None

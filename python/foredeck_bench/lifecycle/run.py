"""The matrix: every case on both stores and both versions of Pi.

A cell is what the tests of its case say, run now, on the real thing. The rounds of `bench crash`
are rows of their own.
"""

from __future__ import annotations

import subprocess
from argparse import ArgumentParser, Namespace
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress, coloured, print_json, table
from foredeck.cli.registry import Command
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


# The command


_SIGNS = {"passed": "ok", "failed": "FAILED", "not applicable": "-"}


def _run(args: Namespace) -> int:
    if args.list:
        return _print_list(args)
    choice = Choice(tuple(args.section), tuple(args.only), args.rounds, args.workers)
    with Progress("running") as progress:
        found = run_lifecycle(choice, lambda note: progress.advance(note=note))
    if args.json:
        print_json(found)
    else:
        _print_matrix(found)
    return 0 if found["ok"] else 1


def _print_list(args: Namespace) -> int:
    if args.json:
        print_json([{"section": c.section, "case": c.text, "tests": list(c.tests)} for c in CASES])
    else:
        print(table([(f"{c.section} {TITLES[c.section]}", c.text) for c in CASES]))
    return 0


def _print_matrix(found: dict[str, Any]) -> None:
    rows: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for cell in found["matrix"]:
        rows[cell["section"], cell["case"]][f"{cell['store']} {cell['pi']}"] = cell
    places = list(dict.fromkeys(f"{c['store']} {c['pi']}" for c in found["matrix"]))
    shown = [("", *places, "")]
    section = ""
    for (title, case), cells in rows.items():
        if title != section:
            section = title
            shown.append((coloured(title, "bold"), *["" for _ in places], ""))
        states = [_SIGNS[cells[place]["state"]] for place in places]
        notes = [c["note"] for c in cells.values() if c["state"] != "passed"]
        shown.append((f"  {case}", *states, "; ".join(dict.fromkeys(notes))))
    print(table(shown))
    print(
        f"\n{found['passed']} passed, {found['failed']} failed, "
        f"{found['not_applicable']} not applicable (-)"
    )


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--section",
        metavar="N",
        action="append",
        default=[],
        choices=[str(n) for n in range(1, 10)],
        help="only one group of cases: 1 branches, 2 compaction, 3 models, 4 crashes, 5 several "
        "agents, 6 other extensions, 7 watching, 8 security, 9 forgetting; may be repeated",
    )
    parser.add_argument(
        "--only",
        metavar="WORDS",
        action="append",
        default=[],
        help="only cases whose text has these words; may be repeated",
    )
    parser.add_argument("--list", action="store_true", help="print the cases and run none")
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=int,
        default=10,
        help="crash rounds per store and version of Pi, 0 for none (default: %(default)s)",
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=positive,
        default=1,
        help="tests at once (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Run every case of a session's life against SQLite and XTDB and the supported versions\n"
        "of Pi, and print a matrix: passed, failed, or not applicable with the reason. The cases\n"
        "are tests of a checkout, most of them through the real Pi; what they need is installed\n"
        "there first. Takes half an hour or more. Exit code 1 if a case failed."
    ),
    example="foredeck bench lifecycle --section 1 --json",
    configure=_configure,
    run=_run,
)

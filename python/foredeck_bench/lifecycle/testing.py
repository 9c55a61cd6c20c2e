"""Running the tests of the cases, and what became of each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from foredeck_bench.crash.run import CHECKOUT
from foredeck_bench.lifecycle.case import REAL
from foredeck_bench.scripted.pi_process import VERSIONS

PASSED, FAILED, NOT_APPLICABLE = "passed", "failed", "not applicable"
_VERSION = re.compile("|".join(re.escape(version) for version in VERSIONS))
_PROGRESS = re.compile(r"(tests/\S+::\S+) .*\[ *(\d+)%\]|\[ *(\d+)%\] \w+ (tests/\S+::\S+)")

Advance = Callable[[str], None]
Outcomes = dict[str, list["CaseOutcome"]]


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What became of one test, which ran on one version of Pi or on none."""

    test: str
    version: str | None
    state: str
    note: str


def run_tests(names: Iterable[str], store: str, workers: int, advance: Advance) -> Outcomes:
    """Run these tests with that store; their outcomes by the names that were given.

    A test of the real Pi runs on every version, also where it is usually shown on one alone.
    """
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    with tempfile.TemporaryDirectory(prefix="foredeck-lifecycle-") as folder:
        report = Path(folder) / "report.xml"
        _run(wanted, report, store, workers, advance)
        found = list(outcomes(report)) if report.exists() else []
    by_name: Outcomes = defaultdict(list)
    for name in wanted:
        by_name[name] += [o for o in found if o.test == name or o.test.startswith(f"{name}::")]
    return by_name


def _run(names: list[str], report: Path, store: str, workers: int, advance: Advance) -> None:
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    command += ["-n", str(workers)] if workers > 1 else []
    kept = {name: text for name, text in os.environ.items() if not name.startswith("FOREDECK_")}
    chosen = {"FOREDECK_TEST_STORE": store, "FOREDECK_TEST_VERSIONS": "all"}
    with subprocess.Popen(
        [*command, f"--junitxml={report}", *names],
        cwd=CHECKOUT,
        env={**kept, **chosen},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
    ) as running:
        failed = 0
        for line in running.stdout or ():
            if match := _PROGRESS.search(line):
                test, share = match[1] or match[4], match[2] or match[3]
                failed += " FAILED" in line or " ERROR" in line
                advance(f"{store}, {share}%, {failed} failed: {test.rsplit('::', 1)[1]}")


def outcomes(report: Path) -> Iterator[CaseOutcome]:
    """The outcomes in a report of pytest's in JUnit's format."""
    for case in ElementTree.parse(report).iter("testcase"):
        name, _, parameters = case.get("name", "").partition("[")
        modules = (case.get("classname") or "").split(".")
        classes = [part for part in modules if part.startswith("Test")]
        file = "/".join(modules[: len(modules) - len(classes)]) + ".py"
        version = _VERSION.search(parameters) if file.startswith(REAL) else None
        state, note = _state(case)
        yield CaseOutcome(
            "::".join([file, *classes, name]), version.group() if version else None, state, note
        )


def _state(case: ElementTree.Element) -> tuple[str, str]:
    for child in case:
        if child.tag in ("failure", "error"):
            return FAILED, child.get("message") or ""
        if child.tag == "skipped":
            return NOT_APPLICABLE, child.get("message") or ""
    return PASSED, ""

"""What holds little of what was asked for is no hit beside what holds much."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from search.sessions import Searched, Talk, searched

FACTS = {
    "staging": "Staging runs on k8s in Frankfurt, production on plain virtual machines",
    "backups": "Backups go to an s3 bucket in another region, encrypted with age",
    "keys": "Translations use i18n keys in camelCase",
    "printers": "Old x86 machines run the label printers in the warehouse",
    "reports": "The warehouse reads reports as CSV with semicolons",
    "retries": "The HTTP client backs off before it retries, at most 8 times",
    "timeout": "The HTTP client gives up after 10 seconds",
    "sessions": "Sessions of users expire after 30 days",
    "tests": "Slow tests are skipped unless --slow is given",
    "kernel": "The kernel module is built in CI",
}


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Searched]:
    with searched(tmp_path) as made:
        for name, fact in FACTS.items():
            Talk(made.store, name).say(user=fact)
        yield made


@pytest.mark.parametrize(
    ("query", "names"),
    [
        *(("k8s", ["staging"]), ("s3", ["backups"]), ("i18n", ["keys"]), ("x86", ["printers"])),
        *(("k9s", []), ("e2e", []), ("where does staging run", ["staging"])),
        ("CSV reports of the warehouse", ["reports"]),
        ("how often does the HTTP client retry", ["retries", "timeout"]),
        ("warehouse", ["reports", "printers"]),
    ],
)
def test_only_what_is_meant_comes_back(stored: Searched, query: str, names: list[str]) -> None:
    assert {document.split(":")[1] for document in stored.found(query)} == {*names}


def test_what_is_left_out_is_counted(stored: Searched) -> None:
    found = stored.find("CSV reports of the warehouse")
    assert (found.total, len(found.hits), found.weak, found.more) == (2, 1, 1, 0)
    every = stored.find("warehouse")
    assert (every.total, len(every.hits), every.weak) == (2, 2, 0)

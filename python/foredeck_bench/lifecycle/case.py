"""One case of a session's life, and the tests that show that it comes through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

STORES = ("sqlite", "xtdb")
REAL = "tests/realpi/"
OWN_STORE = (f"{REAL}test_pi_xtdb.py",)
"""Tests on the real Pi that bring the store that they need, whatever is asked for."""


@dataclass(frozen=True, slots=True)
class Case:
    """A row of the matrix.

    `section` is a key of `cases.TITLES`. `tests` are pytest ids without parameters, or files
    for all in them. A test of `tests/realpi` runs once per version of Pi and per store; one of
    another folder shows something below Pi and counts for both versions. `stores`: those on which
    the case can occur; `why_not` says why it cannot on the others. `on`: tests for one store alone,
    where each has its own; a case has these or `tests` or both.
    """

    section: str
    text: str
    tests: tuple[str, ...]
    stores: tuple[str, ...] = STORES
    why_not: str = ""
    on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def tests_on(self, store: str) -> tuple[str, ...]:
        """What shows the case on that store."""
        return (*self.tests, *self.on.get(store, ()))


def depends_on_store(test: str) -> bool:
    """Whether a test runs on the store that the bench names, and not on one of its own."""
    return test.startswith(REAL) and not test.startswith(OWN_STORE)


def real(*tests: str) -> tuple[str, ...]:
    """Tests of `tests/realpi`: `sessions::the_tree` is `test_pi_sessions.py::test_the_tree`."""
    return tuple(f"{REAL}{_expanded(test)}" for test in tests)


def _expanded(test: str) -> str:
    file, _, name = test.partition("::")
    return f"test_pi_{file}.py" + (f"::test_{name}" if name else "")

"""Killed processes, and stores that cannot be used."""

from __future__ import annotations

from foredeck_bench.lifecycle.case import Case, real

_FILE = "XTDB has no file that others hold: while it cannot be reached, see the row on its node"
_COPY = "test_a_damaged_copy_is_quarantined_and_rebuilt_from_xtdb"
_NODE = "SQLite has no node"
_STORE = "tests/store/"


def _case(text: str, *tests: str) -> Case:
    return Case("4", text, real(*tests))


def _of(store: str, why_not: str, text: str, *tests: str) -> Case:
    return Case("4", text, tests, (store,), why_not)


def _each(text: str, sqlite: tuple[str, ...], xtdb: tuple[str, ...]) -> Case:
    """A case that each store shows with tests of its own."""
    return Case("4", text, (), on={"sqlite": sqlite, "xtdb": xtdb})


CASES = (
    _case(
        "engine killed before the commit, between commit and reply, reply and send, send and word",
        "fallback::a_death_changes_no_byte",
    ),
    _case("engine killed again and again", "processes::many_deaths_never_lose_a_result"),
    _case(
        "engine killed between prompts", "processes::an_engine_killed_between_prompts_comes_back"
    ),
    _case("engine killed while a tool has emptied a file: no version of that", "half_written"),
    _case(
        "Pi killed or ended: no orphan process",
        "processes::no_engine_outlives_a_pi_that_is_killed",
        "processes::no_engine_outlives_a_pi_that_is_terminated",
    ),
    _case(
        "a call without an answer: the last prompt again, and what is new",
        "fallback::one_call_without_an_answer",
        "fallback::content_at_the_end_stays_where_a_turn_with_sealed_reasoning_goes_on_without"
        "_an_answer",
    ),
    _case("engine that hangs is replaced", "processes::an_engine_that_hangs_for_good_is_replaced"),
    _each(
        "no half transaction, no lock left that stops the next start",
        (f"{_STORE}test_sqlite.py::TestProcesses", f"{_STORE}test_sqlite_file.py::TestMaking"),
        (f"{_STORE}test_xtdb.py::TestProcesses", f"{_STORE}test_xtdb_faults.py"),
    ),
    _each(
        "disk full: under the file, under the node",
        (*real("trouble::a_disk_that_is_full"), f"{_STORE}test_sqlite_file.py::TestTrouble"),
        (f"{_STORE}test_xtdb_trouble.py::test_a_full_disk_is_reported_and_loses_nothing",),
    ),
    _of(
        "sqlite",
        "nothing to choose there: the node waits for the disk at each commit",
        "power loss: what a commit waits for can be chosen (`sqlite.synchronous`)",
        f"{_STORE}test_sqlite_file.py::TestMaking::test_wal_and_the_settings_that_were_asked_for",
    ),
    _case("state folder that cannot be written", "trouble::a_state_folder_that_cannot_be_written"),
    _of(
        "sqlite",
        _FILE,
        "database locked by another process",
        *real(
            "trouble::a_store_that_another_process_holds",
            "trouble::a_store_that_another_process_holds_for_a_while",
        ),
    ),
    _each(
        "database damaged: a clear word, a fresh store beside it, the bad one kept",
        real(
            "trouble::a_damaged_store_is_kept_and_work_goes_on_in_a_fresh_one",
            "trouble::a_store_that_is_damaged_between_prompts",
        ),
        (f"{_STORE}test_journal_faults.py::{_COPY}",),
    ),
    _of(
        "xtdb",
        _NODE,
        "node killed under a session, node down and back",
        *real("xtdb"),
        f"{_STORE}test_journal_faults.py",
    ),
    _each(
        "clock stepping back",
        (f"{_STORE}test_sqlite_file.py::TestMaking::test_a_clock_that_steps_back",),
        (f"{_STORE}test_xtdb_differential.py",),
    ),
)

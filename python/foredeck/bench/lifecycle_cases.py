"""What a session goes through in its life, and the tests that show that it comes through.

A test of `tests/realpi` runs once per version of Pi and per store. One of another folder shows
something below Pi: it counts for both versions, and for the stores that are named with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

STORES = ("sqlite", "xtdb")
REAL = "tests/realpi/"


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `tests`: pytest ids without parameters, a file for all of it. `stores`: where it
    can be; `why_not` says why it is nothing for the others."""

    section: str
    text: str
    tests: tuple[str, ...]
    stores: tuple[str, ...] = STORES
    why_not: str = ""


def _real(section: str, text: str, *tests: str, **more: Sequence[str] | str) -> Case:
    return Case(section, text, tuple(REAL + test for test in tests), **more)  # type: ignore[arg-type]


_SESSIONS = "test_pi_sessions.py::test_"
_COMPACTION = "test_pi_compaction.py::test_"
_TROUBLE = "test_pi_trouble.py::test_"
_FALLBACK = "test_pi_fallback.py::test_"
_BELOW = "the context core keeps to the store's protocol, which the contract suite proves on both"
_FILE = "it is about SQLite's file; the XTDB node has its own"

CASES: tuple[Case, ...] = (
    _real(
        "1",
        "/tree: each branch has its prompt back",
        f"{_SESSIONS}the_tree_brings_back_each_branch_as_it_was",
    ),
    _real(
        "1",
        "fork: handles and bytes of the parent",
        f"{_SESSIONS}a_fork_inherits_handles_and_bytes",
    ),
    _real("1", "new and switch keep apart", f"{_SESSIONS}new_and_switched_sessions_keep_apart"),
    _real(
        "1", "resume in a new process", f"{_SESSIONS}continue_in_a_new_process_sends_the_same_bytes"
    ),
    _real(
        "1", "begun without foredeck", f"{_SESSIONS}a_session_from_before_foredeck_goes_on_with_it"
    ),
    _real(
        "1",
        "foredeck removed, and back",
        f"{_SESSIONS}a_session_goes_on_without_foredeck_and_with_it_again",
    ),
    _real("1", "no session file", f"{_SESSIONS}without_a_session_file_nothing_is_lost"),
    Case(
        "1",
        "host edits and hidden entries",
        ("tests/context/test_branches.py",),
        ("sqlite",),
        _BELOW,
    ),
    _real(
        "2",
        "at the threshold, without a model",
        f"{_COMPACTION}at_the_threshold_chat_is_summed_up_without_a_model",
    ),
    _real(
        "2",
        "folding before compaction",
        f"{_COMPACTION}at_the_threshold_what_can_be_folded_goes_before_chat_does",
    ),
    _real(
        "2",
        "/compact by the model",
        f"{_COMPACTION}the_users_own_compaction_is_written_by_the_model_and_can_be_activated",
    ),
    _real(
        "2",
        "overflow: tried once more, smaller",
        f"{_COMPACTION}a_prompt_that_is_refused_as_too_long_is_tried_once_more_and_smaller",
    ),
    _real(
        "2",
        "resume after a compaction",
        f"{_SESSIONS}a_resumed_session_after_compaction_sends_the_same_bytes",
    ),
    Case(
        "3",
        "other models, windows from 8k to 1M",
        ("tests/context/test_fitting.py",),
        ("sqlite",),
        _BELOW,
    ),
    _real(
        "4", "engine killed over a request: no byte differs", f"{_FALLBACK}a_death_changes_no_byte"
    ),
    _real(
        "4",
        "Pi killed: no engine is left",
        "test_pi_processes.py::test_no_engine_outlives_a_pi_that_is_killed",
    ),
    _real(
        "4",
        "engine that hangs is replaced",
        "test_pi_processes.py::test_an_engine_that_hangs_for_good_is_replaced",
    ),
    _real(
        "4",
        "damaged store: kept, a fresh one beside it",
        f"{_TROUBLE}a_damaged_store_is_kept_and_work_goes_on_in_a_fresh_one",
        stores=("sqlite",),
        why_not=_FILE,
    ),
    _real(
        "4",
        "locked by another process",
        f"{_TROUBLE}a_store_that_another_process_holds",
        stores=("sqlite",),
        why_not=_FILE,
    ),
    _real(
        "4",
        "state folder that cannot be written",
        f"{_TROUBLE}a_state_folder_that_cannot_be_written",
        stores=("sqlite",),
        why_not="XTDB's copy lies in the same folder",
    ),
    _real("4", "disk full", f"{_TROUBLE}a_disk_that_is_full", stores=("sqlite",), why_not=_FILE),
    _real(
        "4",
        "XTDB node killed or down",
        "test_pi_xtdb.py",
        stores=("xtdb",),
        why_not="SQLite has no node",
    ),
    Case(
        "4",
        "clock stepping back",
        ("tests/store/test_sqlite.py",),
        ("sqlite",),
        "see the next case",
    ),
    Case(
        "4",
        "clock stepping back, on XTDB",
        ("tests/store/test_xtdb.py",),
        ("xtdb",),
        "see the case before",
    ),
    Case(
        "5",
        "agents at once on SQLite",
        ("tests/bench/test_agents.py::test_three_agents_on_sqlite",),
        ("sqlite",),
        "see the next case",
    ),
    Case(
        "5",
        "agents at once on XTDB",
        ("tests/bench/test_agents.py::test_two_agents_on_xtdb",),
        ("xtdb",),
        "see the case before",
    ),
    _real("5", "subagents are linked", "test_pi_subagents.py"),
    _real("6", "extensions that change what we see", "test_pi_extensions.py"),
    _real("6", "extensions from npm", "test_pi_npm_extensions.py"),
    _real("7", "changes on disk are told once", "test_pi_disk.py"),
    Case(
        "7",
        "storms, checkout, editors, no watches left",
        ("tests/bench/test_storm.py",),
        ("sqlite",),
        _BELOW,
    ),
    Case(
        "8",
        "text of ours cannot be forged",
        ("tests/context/test_quoting.py",),
        ("sqlite",),
        _BELOW,
    ),
    Case(
        "8",
        "a hostile peer on the wire",
        ("tests/bench/test_wire.py",),
        ("sqlite",),
        "no store is asked",
    ),
    Case("9", "forget and vacuum", ("tests/cli/test_forget_command.py",)),
)

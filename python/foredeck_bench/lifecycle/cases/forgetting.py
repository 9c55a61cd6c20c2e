"""Growth and forgetting."""

from __future__ import annotations

from foredeck_bench.lifecycle.case import Case, real

_FORGET = "tests/cli/test_forget_command.py::test_"
_ANY = "tests/context/test_forgetting.py::test_"
_XTDB = "the commands act on the store's protocol; XTDB has a row of its own"

CASES = (
    Case(
        "9",
        "a session deleted in Pi is offered for forgetting; shared objects stay",
        real("forgotten::a_session_deleted_in_pi_is_offered_and_forgotten"),
    ),
    Case("9", "sessions --size", (f"{_FORGET}sessions_show_their_size",), ("sqlite",), _XTDB),
    Case(
        "9",
        "forget: text goes, shared objects stay, tombstones tell",
        (),
        on={
            "sqlite": (
                f"{_FORGET}a_session_goes_and_the_others_stay",
                f"{_FORGET}texts_that_others_share_stay",
                f"{_FORGET}the_text_is_gone_from_the_file",
                f"{_FORGET}a_fork_keeps_the_calls_that_it_continues",
                f"{_FORGET}several_go_at_once",
            ),
            "xtdb": (f"{_FORGET}a_session_goes_from_xtdb_too",),
        },
    ),
    Case(
        "9",
        "forget in any order, killed on the way, others at work: no text lost, none left",
        (),
        on={
            "sqlite": (
                f"{_ANY}others_keep_all_and_nothing_else_stays",
                f"{_ANY}what_is_taken_up_meanwhile_stays",
                f"{_ANY}a_text_erased_in_the_middle_of_a_commit_is_written_again",
            ),
            "xtdb": (
                "tests/store/test_journal.py::TestOtherMachines::"
                "test_texts_that_only_another_machine_needs_too_are_known",
            ),
        },
    ),
    Case("9", "vacuum", (f"{_FORGET}vacuum_gives_space_back",), ("sqlite",), "a file of SQLite's"),
    Case(
        "9",
        "many sessions in one store: size, start and assembly do not drift",
        ("tests/bench/test_growth.py",),
        ("sqlite",),
        "measured on SQLite, which is also the local copy in front of XTDB",
    ),
)

"""Several agents on one store."""

from __future__ import annotations

from foredeck_bench.lifecycle.case import Case, real

_AGENTS = "tests/bench/test_agents.py::test_"

CASES = (
    Case(
        "5",
        "engines at once on one database: isolated, one history, no lost update",
        (),
        on={
            "sqlite": (f"{_AGENTS}three_agents_on_sqlite",),
            "xtdb": (f"{_AGENTS}two_agents_on_xtdb",),
        },
    ),
    Case(
        "5",
        "two Pis at once: each told once of the other's changes to its resident files",
        real("together::two_agents_are_each_told_once_of_the_others_change"),
    ),
    Case(
        "5",
        "one session open twice",
        ("tests/context/test_same_session.py",),
        ("sqlite",),
        "below the store: the context core keeps to its protocol",
    ),
    Case(
        "5",
        "subagents are sessions of their own, linked to their parent",
        real(
            "subagents",
            "npm_extensions::what_runs_in_the_background_is_a_session_linked_to_its_parent",
        ),
    ),
)

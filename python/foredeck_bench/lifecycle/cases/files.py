"""Files that change under a session."""

from __future__ import annotations

from foredeck_bench.lifecycle.case import Case, real

_TRACKING = "tests/sources/test_tracking.py::test_"
_ANY = "files are watched before any store is asked; shown with SQLite"


def _real(text: str, *tests: str) -> Case:
    return Case("7", text, real(*tests))


def _below(text: str, *tests: str) -> Case:
    return Case("7", text, tests, ("sqlite",), _ANY)


CASES = (
    _real(
        "a change by something else is told once, at the newest message",
        "disk::a_change_by_something_else_is_announced_once_at_the_newest_message",
        "disk::a_change_inside_a_turn_is_announced_with_the_next_result",
    ),
    _real(
        "the agent's own changes are not told",
        "disk::changes_by_the_agent_itself_are_not_announced",
    ),
    _real("a change while Pi was away", "disk::a_change_while_pi_was_away_is_announced_at_resume"),
    _real("deleted and made again", "disk::a_deletion_and_a_return_are_told_and_kept"),
    _below(
        "storm with the reader stopped; git checkout; editors; npm install; no watches left; idle",
        "tests/bench/test_storm.py",
        "tests/sources/test_storms.py",
    ),
    _below("editors that save by rename", f"{_TRACKING}an_editor_that_saves_by_rename"),
    _below(
        "network and container mounts",
        "tests/context/test_container.py",
        "tests/sources/test_filesystem.py",
        f"{_TRACKING}an_audit_finds_what_no_event_reported",
        f"{_TRACKING}what_differs_is_known_without_an_event",
    ),
    _below(
        "inotify's limit reached: compared by stat, and said",
        f"{_TRACKING}a_system_without_watches_left_is_compared",
        f"{_TRACKING}folders_over_the_bound_are_compared",
    ),
)

"""The seam: who can read what, what is logged, what is believed."""

from __future__ import annotations

from foredeck_bench.lifecycle.case import Case, real

_BELOW = "below the store: shown with SQLite"


def _both(text: str, *tests: str) -> Case:
    return Case("8", text, tests)


CASES = (
    _both(
        "state folder for its user alone; no content and no secrets in logs or status",
        *real("private::state_is_private_and_logs_hold_no_content"),
    ),
    _both(
        "state folder that others can read is closed, a shared one refused",
        "tests/config/test_state_folder.py",
    ),
    Case(
        "8",
        "paths from the model never lead where Pi could not read",
        (*real("private::paths_lead_nowhere_that_pi_cannot_read"),),
    ),
    Case(
        "8",
        "import files: sizes, counts and paths checked, hashes verified",
        (),
        on={
            "sqlite": ("tests/store/test_sqlite_portable.py",),
            "xtdb": ("tests/store/test_xtdb_portable.py",),
        },
    ),
    _both(
        "hostile files and outputs forge no line of ours",
        *real("private::hostile_content_forges_no_line_of_ours"),
    ),
    Case(
        "8",
        "text of ours cannot be forged, in every form that renders it",
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
)

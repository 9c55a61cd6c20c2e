"""How many random examples a test tries."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_ALL = os.environ.get("FOREDECK_TEST_EXAMPLES") == "random"


def examples(count: int) -> int:
    """`count` where new examples are looked for, else a tenth of it, at least one.

    A repeatable run tries the same ones every time: what the others could find, they have found.
    """
    return count if _ALL else max(1, count // 10)


def sessions(count: int, steps: int = 14) -> settings:
    """The settings of a state machine that plays so many sessions of so many steps."""
    return settings(
        max_examples=examples(count),
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )

"""How many random examples a test tries."""

from __future__ import annotations

import os

_ALL = os.environ.get("FOREDECK_TEST_EXAMPLES") == "random"


def examples(count: int) -> int:
    """`count` where new examples are looked for, else a third of it, at least one.

    A repeatable run tries the same ones every time: what the last two thirds could find, they
    have found.
    """
    return count if _ALL else max(1, count // 3)

"""How many random examples a test tries."""

from __future__ import annotations

import os

_ALL = os.environ.get("FOREDECK_TEST_EXAMPLES") == "random"


def examples(count: int) -> int:
    """`count` where new examples are looked for, else a tenth of it, at least one.

    A repeatable run tries the same ones every time: what the others could find, they have found.
    """
    return count if _ALL else max(1, count // 10)

"""The version of foredeck, and those of Pi that it runs in."""

from __future__ import annotations

import re
from typing import TypeAlias

from foredeck.finding import Finding, note, ok, problem

__version__ = "0.1.0"


Version: TypeAlias = tuple[int, ...]

PI_MIN = (1, 5, 2)
PI_TESTED = ((1, 5), (1, 6))
"""Minor versions, the oldest first."""
PI_PACKAGE = "@earendil-works/pi-coding-agent"


def version_in(text: str) -> Version | None:
    """The first version that a text names."""
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return tuple(map(int, match.groups())) if match else None


def dotted(version: Version) -> str:
    """A version as it is written."""
    return ".".join(map(str, version))


def pi_finding(version: Version, place: str = "") -> Finding:
    """Whether foredeck runs in this Pi, and was tested with it."""
    text = f"{dotted(version)}{place}"
    if version < PI_MIN:
        update = f"Update it: pi update, or npm install -g {PI_PACKAGE}"
        return problem("pi", f"{text}: foredeck is off below {dotted(PI_MIN)}", update)
    if version[:2] > PI_TESTED[-1]:
        newest = f"newer than {dotted(PI_TESTED[-1])}, the last that foredeck was tested with"
        return note("pi", f"{text}, {newest}", "Should something fail, update foredeck.")
    return ok("pi", text)

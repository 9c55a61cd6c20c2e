"""Keeping what others wrote apart from what foredeck says (docs/context.md).

Lines of ours stand first in a message. What follows them is anybody's text, and may pretend: what
comes first never can.
"""

from __future__ import annotations

import json
import re

_OURS = re.compile(
    r"^(@\d+\b|toolcall_ref id=|\[foredeck\]|Unchanged: |<(?:activate )?@\d+:)", re.MULTILINE
)
_RUN = re.compile(r"\[foredeck\] [^\n]{1,60} stood here, folded[:;]")
_NOTICE = re.compile(r"^(?=\[foredeck\])", re.MULTILINE)
_BREAKS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
"""What some reader takes for the end of a line, and what no one can see."""


def looks_like_ours(text: str) -> bool:
    """Whether a line of a text could be taken for one of `wording`."""
    return _OURS.search(text) is not None


def is_reference(text: str) -> bool:
    """Whether a text is what is left of a folded result: a reference line, then its digest."""
    return text.startswith("toolcall_ref id=@")


def is_run(text: str) -> bool:
    """Whether a text stands for a run of folded calls: a heading, the calls, then names."""
    return _RUN.match(text) is not None


def inside_ours(text: str) -> str:
    """Text of others inside a message of ours: none of its lines can begin as a notice of ours."""
    return _NOTICE.sub(" ", text)


def on_one_line(name: str) -> str:
    """A path or a name that somebody else chose, so that it cannot begin a line of its own."""
    return json.dumps(name) if _BREAKS.search(name) else name

"""An output without what its host has added at the end: a notice, how the command ended."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ENDED = re.compile(r"\n*(?:Command exited with code|exit code:?) (\d+)\s*\Z", re.IGNORECASE)
_NOTICE = re.compile(
    r"\n\n(?:\[(?:Showing l|\d+ more lines in file|Output truncated|[^\n]*limit reached"
    r"|[^\n]*truncated to )[^\n]*\]|\.\.\. \(\d+ more lines not shown[^\n]*\))\Z"
)
_DIFF_HEAD = re.compile(r"^(?:diff --git .*|index [0-9a-f]+\.\..*|--- a/.*)\n", re.MULTILINE)
_TAIL = 1000
"""What the host adds is in this many characters at the end."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool has put out."""

    body: str
    exit_code: int | None = None
    """What it is said to have been; None where that is not said."""

    @classmethod
    def of(cls, text: str) -> ToolOutput:
        """From a result as the host gives it."""
        ended = _ENDED.search(text, max(0, len(text) - _TAIL))
        body = text[: ended.start()] if ended else text
        notice = _NOTICE.search(body, max(0, len(body) - _TAIL))
        if notice:
            body = body[: notice.start()]
        return cls(body, int(ended[1]) if ended else None)

    @property
    def named(self) -> str:
        """The body for its names: of a difference each path once, and as it is."""
        if "diff --git " not in self.body:
            return self.body
        return _DIFF_HEAD.sub("", self.body).replace("\n+++ b/", "\n+++ ")


def counted(number: int, noun: str) -> str:
    """`1 hit`, `2 hits`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

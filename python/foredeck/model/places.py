"""The part of an object that is asked for after its name: `@12 turns 3-7`, `chat:ID message 93`,
`@52::args.command`, `@12 at 3f2a91bc`."""

from __future__ import annotations

import re
from dataclasses import dataclass

SLICE = re.compile(
    r"^(?P<name>.+?)\s+(?P<unit>turn|message|char)s?\s+(?P<first>\d+)(?:\s*(?:-|to)\s*(?P<last>\d+))?$"
)
FIELD = re.compile(r"^(?P<name>.+?)::(?P<field>[\w.\[\] -]+)$")
WITH_HASH = re.compile(r"^(?P<name>.+?)\s+at (?P<hash>[0-9a-f]{8,64})$")


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of an object, both ends included, counted from 1."""

    unit: str
    """`turn`: of the user's; `message`: of a chat, one answer with what was said before it; or
    `char`."""
    first: int
    last: int

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self.first <= number <= self.last

    def __str__(self) -> str:
        last = "" if self.last == self.first else f"-{self.last}"
        return f"{self.unit}{'s' if last else ''} {self.first}{last}"


def slice_of(match: re.Match[str]) -> Slice:
    """The slice that `SLICE` has found."""
    first = int(match["first"])
    return Slice(match["unit"], first, int(match["last"] or first))

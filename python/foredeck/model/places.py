"""Suffixes that ask for a part: `@12 turns 3-7`, `chat:ID message 93`, `@52::args.command`,
`notes.md#Decisions`, `@12 v2`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

_SLICE = re.compile(
    r"^(?P<name>.+?)\s+(?P<unit>turn|message|char)s?\s+(?P<first>\d+)(?:\s*(?:-|to)\s*(?P<last>\d+))?$"
)
_WITH_HASH = re.compile(r"^(?P<name>.+?)\s+at (?P<hash>[0-9a-f]{8,64})$")
_FIELD = re.compile(r"^(?P<name>.+?)\s*::(?P<field>[\w.\[\] -]+)$")
_SECTION = re.compile(r"^(?P<name>[^#]+?)\s*#(?P<section>.+)$")
_VERSION = re.compile(r"^(?P<name>.+?)\s+(?:v(?P<version>\d+)|(?:as of )?call (?P<call>\d+))$")

_LINK = re.compile(r"^!?\[\[(?P<inner>[^\[\]|]+)(?:\|[^\[\]]*)?\]\](?P<rest>.*)$")

OF_STORED = (_SLICE, _WITH_HASH, _FIELD)
"""Suffixes of any stored object."""
OF_A_SESSION = (*OF_STORED, _SECTION, _VERSION)
"""Suffixes within a session, which numbers its versions."""


@dataclass(frozen=True, slots=True)
class Slice:
    unit: str
    """`turn`, `message` (an answer with what preceded it) or `char`."""
    first: int
    last: int

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self.first <= number <= self.last

    def __str__(self) -> str:
        last = "" if self.last == self.first else f"-{self.last}"
        return f"{self.unit}{'s' if last else ''} {self.first}{last}"


@dataclass(frozen=True, slots=True)
class AskedPart:
    version: int | None = None
    """By the session's count of versions."""
    call: int | None = None
    """The version of this call."""
    slice: Slice | None = None
    section: str | None = None
    """A heading of a Markdown file, or a block (`^id`)."""
    field: str | None = None
    """A field, such as `args.path`, instead of the content."""
    hash: str | None = None
    """Beginning of a stored version's hash."""


def unlinked(text: str) -> str:
    """A name without link marks: `[[notes/tides#Neap|tides]]` as `notes/tides#Neap`."""
    name = text.strip()
    link = _LINK.match(name)
    return name if link is None else (link["inner"].strip() + link["rest"]).strip()


def split_name(
    text: str, forms: Sequence[re.Pattern[str]], is_whole: Callable[[str], bool]
) -> tuple[str, AskedPart]:
    """Splits a name from its suffixes.

    `is_whole`: whether an object has exactly this name, suffix and all.
    """
    matches: list[re.Match[str]] = []
    while (match := _match(text, forms)) is not None and not is_whole(text):
        matches.append(match)
        text = match["name"]
        if match.re is _VERSION:
            break  # a version is one of an object, not of a part or a version of it
    # The innermost first: of two that say the same, the one that stands last counts.
    return text, reduce(_with, reversed(matches), AskedPart())


def _match(text: str, forms: Sequence[re.Pattern[str]]) -> re.Match[str] | None:
    return next((match for form in forms if (match := form.match(text))), None)


def _with(part: AskedPart, match: re.Match[str]) -> AskedPart:
    if match.re is _SLICE:
        first = int(match["first"])
        return replace(part, slice=Slice(match["unit"], first, int(match["last"] or first)))
    if match.re is _WITH_HASH:
        return replace(part, hash=match["hash"])
    if match.re is _FIELD:
        return replace(part, field=match["field"].strip())
    if match.re is _SECTION:
        return replace(part, section=match["section"].strip())
    if match["version"]:
        return replace(part, version=int(match["version"]))
    return replace(part, call=int(match["call"]))

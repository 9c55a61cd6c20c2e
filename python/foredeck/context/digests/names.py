"""Names that a text holds and nothing else in view does."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Set

from foredeck.model.names import identifiers

_HEAD = "names:"
_QUANTITY = re.compile(
    # 12, 3.5, 14/398, 2.6e-13; with a unit: 130ms, 50.0KB, 47.2it/s, 04.010Z
    r"\d+(?:[./]\d+)?(?:e[+-]?\d+)?(?:[A-Za-z]{1,3}(?:/[A-Za-z]{1,3})?)?"
    # 2026-02-12, 2026-02-12T05
    r"|\d{4}-\d\d-\d\d(?:T.*)?"
    # an address in memory
    r"|0x[0-9a-f]{8,}"
)
"""What says how many, how much or when: it names nothing."""

_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""A commit's hash is never written out: of it the fact line has the beginning."""

_MEMBER = re.compile(r"(?:[a-z]{1,2}|this|self)\.(\w+)")
"""A member behind what says nothing of it: `m.toolName`, `this.render`."""


def unheld_names(
    text: str, held: Set[str], chars: int, *, named_before: Set[str] = frozenset()
) -> str:
    """`names: ...`, shortest first, as many as fit; empty where there are none.

    `held`: names that can be read elsewhere; `named_before`: those in the line before.

    A path names its last part too, which is not repeated; nor is a member with `this` or a
    short variable in front of it, where the member alone can be read.
    """
    found = identifiers(text)
    names = found - held - named_before
    tails = {name.rpartition("/")[2] for name in names if "/" in name}
    fitting: list[str] = []
    room = chars - len(_HEAD)
    for name in _shortest_first(names - tails):
        if _tells_nothing(name, found):
            continue
        name = _whole(name, text) if "/" in name else name
        room -= len(name) + 1
        if room < 0:
            break
        fitting.append(name)
    return " ".join([_HEAD, *fitting]) if fitting else ""


def _tells_nothing(name: str, found: Set[str]) -> bool:
    if not any(map(str.isalnum, name)) or (len(name) >= 40 and _HASH.fullmatch(name)):
        return True
    if name[0].isdecimal():
        return _QUANTITY.fullmatch(name) is not None
    member = _MEMBER.fullmatch(name) if "." in name else None
    return member is not None and member[1] in found


def _whole(path: str, text: str) -> str:
    """A path with what precedes its first word: `/usr/lib`, `../doc`, `.github/x.yml`."""
    at = start = text.find(path)
    while start > 0 and text[start - 1] in "./~":
        start -= 1
    if start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_$-:"):
        # This is the end of a longer one, or of an address.
        return path
    return text[start:at].removeprefix("./") + path


def _shortest_first(names: Set[str]) -> Iterator[str]:
    """Names by length, those of one length in order; sorted only as far as they are taken."""
    by_length: defaultdict[int, list[str]] = defaultdict(list)
    for name in names:
        by_length[len(name)].append(name)
    for length in sorted(by_length):
        yield from sorted(by_length[length])

"""What is left of a folded result beside its reference line: a digest.

One fact line by kind of output, then names that are in the result and nowhere else in view, so
that the model can tell what it would get by activating it. Deterministic; no model is asked.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from foredeck.commands import ToolOutput
from foredeck.context.digests.facts import (
    command_facts,
    file_facts,
    listing_facts,
    paste_facts,
    search_facts,
)
from foredeck.model.names import identifiers
from foredeck.model.quoting import block, one_line

Facts = Callable[[Mapping[str, Any], ToolOutput], list[str]]

KINDS: dict[str, Facts] = {
    "read": file_facts,
    "grep": search_facts,
    "multi_grep": search_facts,
    "find": listing_facts,
    "ls": listing_facts,
    "bash": command_facts,
    "exec": command_facts,
    "powershell": command_facts,
    "user": paste_facts,
}
"""Tools to what makes the facts of their outputs, the most telling first; other tools' outputs
have none. `user`: of what a user has pasted."""


@dataclass(frozen=True, slots=True)
class DigestSize:
    """How long a digest may be: the smaller of the two. No characters: no digests."""

    chars: int = 2000
    share: float = 0.1
    """Of the text that it replaces."""

    def limit(self, text: str) -> int:
        """Characters that the digest of a text may have."""
        return min(self.chars, int(self.share * len(text)))


def digest(
    tool: str, arguments: Mapping[str, Any], text: str, *, held: Set[str], size: DigestSize
) -> str:
    """The digest of a result, empty where there is nothing to say or no room to say it.

    `held`: names that can be read elsewhere in the prompt.
    """
    limit = size.limit(text)
    if not limit:
        return ""
    output = ToolOutput.of(text)
    facts = KINDS.get(tool)
    line = _fitting(facts(arguments, output), limit - 1) if facts else ""
    line = block(one_line(line))
    room = limit - len(line) - 1
    in_line = identifiers(line)
    names = unheld_names(output.named, held, room, named_before=in_line) if room > 0 else ""
    return "\n".join(part for part in (line, names) if part)


def unheld_names(
    text: str, held: Set[str], chars: int, *, named_before: Set[str] = frozenset()
) -> str:
    """`names: ...`, shortest first, as many as fit; empty where there are none.

    `held`: names that can be read elsewhere; `named_before`: those in the line before.
    """
    found = identifiers(text)
    names = found - held - named_before
    # A path names its last part, too.
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


_MORE = ", ..."


def _fitting(facts: list[str], room: int) -> str:
    """As many facts as fit, in order; of one that lists something its beginning."""
    fitting: list[str] = []
    for fact in facts:
        room -= 2 if fitting else 0
        if len(fact) > room:
            listed = fact[: max(0, room - len(_MORE))].rpartition(", ")[0]
            fitting += [listed + _MORE] if listed else []
            break
        fitting.append(fact)
        room -= len(fact)
    return "; ".join(fitting)


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

# A commit's hash is never written out: the fact line has its beginning.
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

_MEMBER = re.compile(r"(?:[a-z]{1,2}|this|self)\.(\w+)")
"""A member behind what says nothing of it: `m.toolName`, `this.render`."""


def _tells_nothing(name: str, found: Set[str]) -> bool:
    if not any(map(str.isalnum, name)) or (len(name) >= 40 and _HASH.fullmatch(name)):
        return True
    if name[0].isdecimal():
        return _QUANTITY.fullmatch(name) is not None
    # `this.render` says no more than `render`.
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

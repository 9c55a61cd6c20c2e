"""What is left of a folded result beside its reference line: a digest.

One fact line by kind of output, then names that are in the result and nowhere else in view, so
that the model can tell what it would get by activating it. Deterministic; no model is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from foredeck.commands import ToolOutput
from foredeck.context.digests.commands import command_facts, paste_facts
from foredeck.context.digests.files import file_facts
from foredeck.context.digests.names import unheld_names
from foredeck.context.digests.searches import listing_facts, search_facts
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


_MORE = ", ..."


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

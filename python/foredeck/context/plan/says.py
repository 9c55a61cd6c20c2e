"""Messages that foredeck puts between the host's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from foredeck.context.messages.items import Block

Purpose = Literal[
    "head", "layout", "list_start", "summary", "observation", "calls", "turn_end", "no_result"
]
"""`head`: the block before the chat. `layout`: what a layout keeps apart from the chat.
`list_start`: a line at the start of the list, on a history that was cut or a summary of the
host's. `summary`, `observation`, `calls`: a text in place of the messages that it covers: of all
chat up to a message, of a span that was observed, of a run of folded calls. `turn_end`: what ended
a turn. `no_result`: the answer to a call that got none."""

SPANNING: frozenset[Purpose] = frozenset({"observation", "calls"})
"""They take the place of a span in the middle of the chat. Its last message counts their
characters."""

LASTING: frozenset[Purpose] = SPANNING | {"turn_end", "layout"}
"""They keep their place whatever else the list needs: signed reasoning may be bound to them."""


class MessageSpan(NamedTuple):
    """Messages of the host's in a row, by their indexes."""

    first: int
    until: int
    """The one after the last."""

    def holds(self, other: MessageSpan) -> bool:
        """Whether another span lies within this one."""
        return self.first <= other.first and other.until <= self.until


@dataclass(frozen=True, slots=True)
class Say:
    """A message of foredeck's own."""

    purpose: Purpose
    blocks: list[Block]
    covers: MessageSpan | None = None
    """The messages whose place it takes. Some of them may still go out, in their own places."""
    object: str | None = None
    """Id of the object that holds its text: a compaction, an observation or a reflection."""
    call_id: str = ""
    """`no_result`: the provider's id of the call that it answers."""
    tool: str = ""
    """`no_result`: the tool that was called."""
    head_tokens: int = 0
    """`head`: how many tokens it could have had."""

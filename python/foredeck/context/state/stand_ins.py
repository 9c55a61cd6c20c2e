"""Texts that may replace a span of chat: observations of it, and reflections on them.

What they say is written elsewhere, and so is when they are asked for. Here is only what the prompt
needs of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol

from foredeck.context.messages.items import Item
from foredeck.model.messages import are_answered

StandInKind = Literal["observation", "reflection"]


@dataclass(frozen=True, slots=True)
class StandIn:
    """A text for messages that it covers, which are never given up for anything shorter."""

    id: str
    """Of the stored object that holds it."""
    kind: StandInKind
    covers: tuple[str, ...]
    """Addresses of the messages, in their order. A branch without one of them has no use for it."""
    text: str
    task: str = ""
    """What the work was at its end; empty where that was not noted."""
    suggestion: str = ""
    """What its author would do next; empty where that was not noted."""


class StandIns(Protocol):
    """What is known of a session, whichever branch it belongs to."""

    def known(self) -> Sequence[StandIn]:
        """All of them, oldest first. Asked at every call: it must not wait for anything."""
        ...

    def is_due(self, chat_tokens: int, standing_tokens: int) -> bool:
        """Whether more of them may take the place of chat, given how many tokens of chat nothing
        stands for yet, and how many the texts have that stand for the rest.

        Not asked where a prompt would not fit otherwise.
        """
        ...


def span_of(
    stand_in: StandIn, places: Mapping[str, int], items: Sequence[Item]
) -> tuple[int, int] | None:
    """The messages that it covers, as the first and the one after the last.

    `places`: index by address. None where the list does not hold all of them in their order, or
    where they cannot leave without breaking what stays: calls and results go together.
    """
    found = [places.get(address, -1) for address in stand_in.covers]
    if not found or found[0] < 0 or any(b <= a for a, b in pairwise(found)):
        return None
    first, until = found[0], found[-1] + 1
    inside = set(found)
    others = (items[index] for index in range(first, until) if index not in inside)
    if any(item.kind != "opaque" and not item.void for item in others):
        return None
    return (first, until) if _is_whole(items, first, until) else None


def _is_whole(items: Sequence[Item], first: int, until: int) -> bool:
    """Whether no call in it is answered outside it, or the reverse."""
    *_, is_answered = are_answered(items[first:until])
    after = items[until].kind if until < len(items) else "user"
    return is_answered and items[first].kind != "result" and after != "result"

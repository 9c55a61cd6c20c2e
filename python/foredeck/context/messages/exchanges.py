"""Exchanges: an answer with the results of its calls, as places in a list of messages.

What a result's call asked for is in `Item.arguments`, which the plan fills in. Whether a list has
all its results is for `observations.messages.are_answered` to say, and `plan/repairs.py` closes its
holes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foredeck.context.messages.items import Item


def newest_answer(items: Sequence[Item], before: int, *, sent: bool = False) -> int:
    """The newest answer before a place, -1 where there is none. `sent`: one that the host sends,
    neither aborted nor failed."""
    for index in range(before - 1, -1, -1):
        if items[index].kind == "assistant" and not (sent and items[index].void):
            return index
    return -1


def exchanges(items: Sequence[Item], first: int, until: int) -> Iterator[list[int]]:
    """Each message of a span with the results that follow it, as places: of an answer those of its
    calls, of any other message none. What no model sees is left out."""
    group: list[int] = []
    for index in range(first, until):
        kind = items[index].kind
        if kind not in ("result", "opaque") and group:
            yield group
            group = []
        if kind != "opaque":
            group.append(index)
    if group:
        yield group


def exchange_of(items: Sequence[Item], index: int) -> list[int]:
    """The exchange of a result: its answer, then all results. Empty for any other message, and for
    a result that answers no call before it."""
    first = newest_answer(items, index)
    if items[index].kind != "result" or first < 0:
        return []
    if all(call.id != items[index].call_id for call in items[first].calls):
        return []
    group = next(exchanges(items, first, len(items)))
    return group if index in group else []

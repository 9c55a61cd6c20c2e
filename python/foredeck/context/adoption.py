"""What can be told of a history that came about without us, and what can not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from foredeck.context.items import Item


def told_of(items: Sequence[Item]) -> str:
    """For the user: what was taken in, and what is missing in it."""
    kinds = Counter(item.kind for item in items)
    answered = {item.call_id for item in items if item.kind == "result"}
    asked = {call.id for item in items if not item.void for call in item.calls}
    told = [
        f"foredeck has taken in {_count(len(items), 'message')} and "
        f"{_count(kinds['result'], 'tool result')} from before it was on."
    ]
    if kinds["result"]:
        told.append("Of files it knows what they hold now, not what they held then.")
    lost, stray = len(asked - answered), len(answered - asked)
    if lost:
        told.append(f"{_count(lost, 'tool call')} had no result in the session file.")
    if stray:
        told.append(f"{_count(stray, 'result')} had no tool call there, and cannot be sent.")
    if kinds["opaque"]:
        told.append(f"{_count(kinds['opaque'], 'message')} of other kinds went by as they are.")
    return " ".join(told)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")

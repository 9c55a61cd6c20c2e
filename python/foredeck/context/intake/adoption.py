"""What can be told of a history that came about without us, and what can not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from foredeck.context.intake.alignment import Alignment
from foredeck.context.messages.items import Item
from foredeck.context.state.request import Outcome
from foredeck.context.state.session import Session

ADOPTED = "adopted"
"""Why a call from before the session had foredeck is recorded as the host's."""

LONG = 1000
"""So many messages of a history take a second or more, and the user is told how far it is."""


def adoption_report(messages: Sequence[Item]) -> str:
    """For the user: what was taken in of messages, what is new at their end left out, and what is
    missing in it."""
    items = _before_the_newest(messages)
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


def damage_report(count: int) -> str:
    """For the user: that a session file has lines that the host passes over."""
    were, they = ("was", "it") if count == 1 else ("were", "they")
    return (
        f"{_count(count, 'line')} of the session file {were} cut off or damaged: what {they} held "
        "is lost."
    )


def _before_the_newest(items: Sequence[Item]) -> Sequence[Item]:
    length = len(items)
    while length and items[length - 1].kind in ("user", "context"):
        length -= 1
    return items[:length]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def adopted_call(session: Session, alignment: Alignment) -> list[Outcome]:
    """A history from before the session had foredeck: it went out as the host has it."""
    if session.log.newest or alignment.matched:
        return []
    for index in range(len(alignment.items) - 1, -1, -1):
        item = alignment.items[index]
        if item.kind == "assistant" and not item.void:
            return [Outcome("off", messages=index, time_ms=item.time_ms, reason=ADOPTED)]
    return []


def followed(session: Session, indexes: range) -> Iterator[int]:
    """The indexes of messages to be taken in; of a long history the user is told how far it is."""
    is_long = session.log.newest == 0 and len(indexes) >= LONG
    for done, index in enumerate(indexes):
        if is_long and done % LONG == 0:
            session.notify(f"foredeck takes in what was said before: {done:,} of {len(indexes):,}")
        yield index

"""A session that had a history before foredeck was on: what is known of it, and what is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from foredeck.context.intake.alignment import Alignment
from foredeck.context.messages.items import Item
from foredeck.context.state.call_log import CallLog
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.request import Outcome
from foredeck.model.figures import counted

ADOPTED = "adopted"
"""The reason on the record of the newest call from before foredeck was on."""

LONG = 1000
"""A history of as many messages takes a second or more, so its progress is shown."""


def adoption_report(messages: Sequence[Item]) -> str:
    """For the user: what was taken in of a history, and what is missing in it.

    The messages at its end that the model has not answered yet are not history.
    """
    items = _answered(messages)
    kinds = Counter(item.kind for item in items)
    with_result = {item.call_id for item in items if item.kind == "result"}
    called = {call.id for item in items if not item.void for call in item.calls}
    sentences = [
        f"foredeck has taken in {counted(len(items), 'message')} and "
        f"{counted(kinds['result'], 'tool result')} from before it was on."
    ]
    if kinds["result"]:
        sentences.append("Of files it knows what they hold now, not what they held then.")
    lost, stray = len(called - with_result), len(with_result - called)
    if lost:
        sentences.append(f"{counted(lost, 'tool call')} had no result in the session file.")
    if stray:
        sentences.append(f"{counted(stray, 'result')} had no tool call there, and cannot be sent.")
    if kinds["opaque"]:
        sentences.append(
            f"{counted(kinds['opaque'], 'message')} of other kinds went by as they are."
        )
    return " ".join(sentences)


def damage_report(count: int) -> str:
    """For the user: a session file has so many lines that the host could not read."""
    were, they = ("was", "it") if count == 1 else ("were", "they")
    return (
        f"{counted(count, 'line')} of the session file {were} cut off or damaged: what {they} held "
        "is lost."
    )


def _answered(items: Sequence[Item]) -> Sequence[Item]:
    length = len(items)
    while length and items[length - 1].kind in ("user", "context"):
        length -= 1
    return items[:length]


def adopted_call(calls: CallLog, alignment: Alignment) -> list[Outcome]:
    """A history from before foredeck was on, as one call that went out as the host has it."""
    if calls.newest or alignment.matched:
        return []
    for index in range(len(alignment.items) - 1, -1, -1):
        item = alignment.items[index]
        if item.kind == "assistant" and not item.void:
            return [Outcome("off", messages=index, time_ms=item.time_ms, reason=ADOPTED)]
    return []


def with_progress(calls: CallLog, inbox: Inbox, indexes: range) -> Iterator[int]:
    """The indexes of messages to be taken in; the user sees how far a long history is."""
    is_long = calls.newest == 0 and len(indexes) >= LONG
    for done, index in enumerate(indexes):
        if is_long and done % LONG == 0:
            inbox.notify(f"foredeck takes in what was said before: {done:,} of {len(indexes):,}")
        yield index

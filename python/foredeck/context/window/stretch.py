"""A stretch of chat of the user's choice, put away: a summary covers the answers of some calls.

The host keeps what it covers, and so can take it back. Here only the summary is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from foredeck.context.messages.items import Item
from foredeck.context.state.chat import Chat
from foredeck.context.state.objects import Objects
from foredeck.context.window.compacting import pinned_in
from foredeck.context.window.compactions import Compacted, SummaryRequest, compact, turn_number
from foredeck.errors import ToolError


@dataclass(frozen=True, slots=True)
class CompactedCalls:
    """A compaction, with the first and the last message that it covers."""

    made: Compacted
    first: Item
    last: Item


def compact_calls(
    objects: Objects, chat: Chat, first: int, last: int, max_chars: int
) -> CompactedCalls:
    """Sum up what the model answered at calls `first` to `last`, with its tools' results and what
    the user said between. The compaction is committed before this returns.

    Raises `ToolError` where the chat does not have these answers, or they hold the newest question.
    """
    answers = _answers(chat)
    if first > last or first not in answers or last not in answers:
        raise ToolError(_what_there_is(answers))
    items = chat.branch.plan.items
    begin, end = answers[first], answers[last] + 1
    while end < len(items) and items[end].kind == "result":
        end += 1
    question = max((n for n, item in enumerate(items) if item.kind == "user"), default=-1)
    if begin <= question < end:
        raise ToolError(
            "The newest question stands among these calls, and it must stay. "
            + _what_there_is({call: at for call, at in answers.items() if at < question})
        )
    covered = items[begin:end]
    made = compact(
        objects,
        chat,
        covered,
        SummaryRequest("user", max_chars, covered[-1].time_ms),
        first=turn_number(chat, covered[0]),
        pinned=pinned_in(chat.branch, covered),
    )
    objects.workspace.commit()
    return CompactedCalls(made, covered[0], covered[-1])


def _answers(chat: Chat) -> dict[int, int]:
    """The calls of this session whose answers are in the chat, each with the answer's index."""
    items = chat.branch.plan.items
    places = {item.key.address: n for n, item in enumerate(items) if item.kind == "assistant"}
    chain = chat.chain(chat.branch.call)
    found: dict[int, int] = {}
    for record, following in pairwise(chain):
        answer = next(following.addresses, "") if following.kept == record.length else ""
        if answer in places and record.session == chat.info.id:
            found[record.ordinal] = places[answer]
    return found


def _what_there_is(answers: dict[int, int]) -> str:
    if not answers:
        return "No call's answer can be put away yet: it takes one more call after it."
    return (
        f"The answers of calls {min(answers)} to {max(answers)} are in the chat: "
        f"/foredeck compact --calls {min(answers)}-{max(answers)} puts them away."
    )

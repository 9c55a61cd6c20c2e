"""Aligns a session with the host's list, by the call records.

A history older than foredeck counts as one call that went out without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from foredeck.context.messages.items import Item, JoinedItems, tips_of
from foredeck.context.state.call_log import BranchState, CallLog, shared_length
from foredeck.context.state.chat import Branch, Chat
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.request import Outcome, Request
from foredeck.errors import OutOfSync
from foredeck.model.call_values import ADOPTED
from foredeck.model.figures import counted
from foredeck.model.messages import MessageKey
from foredeck.model.records import call_id

HOST_SENT = ("fallback", "off")

"""Reason on the record of a call older than foredeck."""

LONG = 1000
"""Messages; longer histories take a second or more, and show progress."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """What is known of the host's list, and which calls it reports."""

    items: Sequence[Item]
    """The whole list."""
    matched: int
    """Messages from the beginning that were sent before."""
    continued: bool
    """Whether the list goes on from the last answer."""
    replaced: bool
    """Whether it continues nothing that was sent."""
    without_us: list[Outcome]
    """Its unrecorded calls that went out otherwise than answered."""


def align(chat: Chat, request: Request) -> Alignment:
    """Goes to the branch with the longest common beginning.

    Raises `OutOfSync` if the host omits messages that the session lacks.
    """
    plan = chat.branch.plan
    if request.keep > len(plan):
        raise OutOfSync("The engine does not hold the messages before these.")
    record, ahead = chat.branch_record, chat.branch.ahead
    applied = [outcome.call for outcome in request.outcomes if outcome.kind == "applied"]
    in_step = record is not None and applied[-1:] == [record.ordinal]
    if request.keep and not (in_step or ahead):
        raise OutOfSync("The host does not hold the engine's last answer.")
    items: Sequence[Item] = JoinedItems(plan.items, request.keep, request.items)
    without_us = [o for o in request.outcomes if o.kind in HOST_SENT and o.messages <= len(items)]
    # Messages that a call has held before may have been sent on another branch: then the
    # records have to say how.
    is_known = any(item.key.address in chat.log.known for item in request.items)
    # Nearly every call: the list goes on from our last answer, and no record needs to be read.
    if in_step and not without_us and not is_known and request.keep == len(plan):
        return Alignment(items, len(plan), True, False, [])
    if ahead and not (request.outcomes or is_known) and request.keep == len(plan):
        return Alignment(items, len(plan), False, False, [])
    items = [*items]
    # Before anything is matched: a provider has never seen the prompts of these.
    for outcome in request.outcomes:
        if outcome.kind == "aborted" and outcome.call is not None:
            chat.log.unsend(call_id(chat.info.id, outcome.call))
    keys = [item.key for item in items]
    tips = tips_of(keys)
    base, without_us = _unrecorded(chat, without_us, keys)
    matched_id, matched, state = _match(chat, base, keys, tips)
    before = _before(chat, matched_id, matched, state)
    addresses = {key.address for key in before.keys}
    # Results that the call before had too, though they are to be rendered again.
    again = [i for i in items[matched:] if i.kind == "result" and i.key.address in addresses]
    # The host has changed its list (a compaction, an extension), not its branch: what was active
    # and pinned stays so.
    if again or (matched == 0 and chat.log.newest > 0):
        state.sets.become(before.sets)
    carried_out = (item.call_id for item in again)
    chat.branch = Branch.restore(
        state, items[:matched], matched_id, chat.store, carried_out, tips=tips[:matched]
    )
    replaced = matched == 0 and chat.log.newest > 0 and not without_us
    if not (without_us or matched or chat.log.newest):
        without_us = _adopted(items)
    return Alignment(items, matched, False, replaced, without_us)


def _adopted(items: Sequence[Item]) -> list[Outcome]:
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if item.kind == "assistant" and not item.unsent:
            return [Outcome("off", messages=index, time_ms=item.time_ms, reason=ADOPTED)]
    return []


def adoption_report(messages: Sequence[Item]) -> str:
    """Tells the user what was taken in of a history, and what is missing."""
    # What the model has not answered yet is not history.
    items = _answered(messages)
    kinds = Counter(item.kind for item in items)
    with_result = {item.call_id for item in items if item.kind == "result"}
    called = {call.id for item in items if not item.unsent for call in item.calls}
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
    """How many lines of a session file are unreadable."""
    were, they = ("was", "it") if count == 1 else ("were", "they")
    return (
        f"{counted(count, 'line')} of the session file {were} cut off or damaged: what {they} held "
        "is lost."
    )


def with_progress(calls: CallLog, inbox: Inbox, indexes: range) -> Iterator[int]:
    """Yields the indexes of messages, and reports progress on a long history."""
    is_long = calls.newest == 0 and len(indexes) >= LONG
    for count, index in enumerate(indexes):
        if is_long and count % LONG == 0:
            inbox.notify(f"foredeck takes in what was said before: {count:,} of {len(indexes):,}")
        yield index


def _unrecorded(
    chat: Chat, without_us: list[Outcome], keys: list[MessageKey]
) -> tuple[str | None, list[Outcome]]:
    # The host reports them until an answer of ours has reached it in time, so some may be recorded
    # already. What went out without us had the edits of the call that it names, whatever was
    # decided after that one; each further one builds on the one before it.
    log, new, base = chat.log, list[Outcome](), None
    for outcome in without_us:
        id = log.host_calls.get((outcome.time_ms, outcome.messages))
        if id is None:
            new.append(outcome)
        elif not new and _common(chat.replay(id), keys) == outcome.messages:
            base = id
    if not new:
        return None, []
    if base is None and new[0].call is not None:
        base = call_id(chat.info.id, new[0].call)
    return base, new


def _match(
    chat: Chat, base: str | None, keys: list[MessageKey], tips: list[str]
) -> tuple[str | None, int, BranchState]:
    log, call = chat.log, base
    if log.record(call) is not None and call not in log.unsent:
        state = chat.replay(call)
        matched = _common(state, keys)
    else:
        call, matched = log.longest_match(keys, tips)
        state = chat.replay(call)
    while call is not None and state.is_cut(matched):
        # What replaces messages covers some that are not in this list: go back to before it did.
        before = log.record(call)
        call = before.parent if before else None
        state = chat.replay(call)
        matched = _common(state, keys)
    state.cut(matched)
    return call, matched, state


def _common(state: BranchState, keys: list[MessageKey]) -> int:
    return shared_length((key.address for key in state.keys), keys)


def _before(chat: Chat, matched_id: str | None, matched: int, state: BranchState) -> BranchState:
    newest = chat.branch.call or call_id(chat.info.id, chat.log.newest)
    record = chat.log.record(newest) if newest == matched_id else None
    if record is not None and record.length == matched:
        return state
    return chat.replay(newest)


def _answered(items: Sequence[Item]) -> Sequence[Item]:
    length = len(items)
    while length and items[length - 1].kind in ("user", "context"):
        length -= 1
    return items[:length]

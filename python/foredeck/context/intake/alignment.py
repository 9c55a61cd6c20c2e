"""Aligning a session with the message list that the host has now.

Usually that is the list of the last call and a few messages more. After a restart, a change of
branch, a compaction or an edit by another extension, the call records say which beginning of the
list has been sent before, and how. A history from before foredeck was on counts as one call that
went out without it.
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
from foredeck.model.figures import counted
from foredeck.model.messages import MessageKey
from foredeck.model.records import call_id

HOST_SENT = ("fallback", "off")
"""Outcomes of calls that went out, but not as we had answered."""

ADOPTED = "adopted"
"""The reason on the record of the newest call from before foredeck was on."""

LONG = 1000
"""A history of as many messages takes a second or more, so its progress is shown."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """How much of the host's list is known, and what became of the calls before."""

    items: Sequence[Item]
    """The whole list."""
    matched: int
    """How many messages from the beginning were sent before."""
    continued: bool
    """The host holds our last answer, and the list goes on from there."""
    replaced: bool
    """The list is not a continuation of anything that was sent."""
    without_us: list[Outcome]
    """The calls of this list that went out, but not as we had answered, and have no record yet."""


def align(chat: Chat, request: Request) -> Alignment:
    """Put the session on the branch that shares the longest beginning with the host's list.

    Raises `OutOfSync` where the host leaves out messages that the session does not hold.
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
    held = {key.address for key in before.keys}
    # Results that the call before had too, though they are to be rendered again.
    again = [i for i in items[matched:] if i.kind == "result" and i.key.address in held]
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
    """A history from before foredeck was on, as one call that went out as the host has it."""
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if item.kind == "assistant" and not item.unsent:
            return [Outcome("off", messages=index, time_ms=item.time_ms, reason=ADOPTED)]
    return []


def adoption_report(messages: Sequence[Item]) -> str:
    """For the user: what was taken in of a history, and what is missing in it."""
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
    """For the user: a session file has so many lines that the host could not read."""
    were, they = ("was", "it") if count == 1 else ("were", "they")
    return (
        f"{counted(count, 'line')} of the session file {were} cut off or damaged: what {they} held "
        "is lost."
    )


def with_progress(calls: CallLog, inbox: Inbox, indexes: range) -> Iterator[int]:
    """The indexes of messages to be taken in; the user sees how far a long history is."""
    is_long = calls.newest == 0 and len(indexes) >= LONG
    for done, index in enumerate(indexes):
        if is_long and done % LONG == 0:
            inbox.notify(f"foredeck takes in what was said before: {done:,} of {len(indexes):,}")
        yield index


def _unrecorded(
    chat: Chat, without_us: list[Outcome], keys: list[MessageKey]
) -> tuple[str | None, list[Outcome]]:
    """The calls that went out without us and have no record yet, and the call they build on."""
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
    """The call that `keys` go on from, how many of its messages they share, and its state.

    `base`: the call that it must be, if it has a record. `tips`: the rolling hashes of `keys`.
    """
    log, named = chat.log, base
    if log.record(named) is not None and named not in log.unsent:
        state = chat.replay(named)
        matched = _common(state, keys)
    else:
        named, matched = log.longest_match(keys, tips)
        state = chat.replay(named)
    while named is not None and state.is_cut(matched):
        # What replaces messages covers some that are not in this list: go back to before it did.
        before = log.record(named)
        named = before.parent if before else None
        state = chat.replay(named)
        matched = _common(state, keys)
    state.cut(matched)
    return named, matched, state


def _common(state: BranchState, keys: list[MessageKey]) -> int:
    """How many messages a branch and a list share from the beginning."""
    return shared_length((key.address for key in state.keys), keys)


def _before(chat: Chat, matched_id: str | None, matched: int, state: BranchState) -> BranchState:
    """The state after the call before this one; `state`, where that is the call that matched
    and the list still has all of its messages."""
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

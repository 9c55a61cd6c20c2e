"""Bringing a session to the message list that the host has now.

Usually that is the list of the last call and a few messages more. After a restart, a change of
branch, a compaction or an edit by somebody else, the call records say which prefix of the list
has been sent before, and how.
"""

from __future__ import annotations

from dataclasses import dataclass

from foredeck.context.branch import Folded
from foredeck.context.conversation import Conversation
from foredeck.context.items import Item, Key
from foredeck.context.parts import Part
from foredeck.context.request import Request
from foredeck.context.session import Session
from foredeck.errors import OutOfSync
from foredeck.model.records import call_id

HOST_SENT = ("fallback", "off")
"""Outcomes of calls that went out, but not as we had said."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Where the work begins."""

    items: list[Item]
    """The whole list."""
    matched: int
    """Messages from the beginning that stand as they were sent before."""
    continued: bool
    """The host holds our last answer, and the list goes on from there."""
    replaced: bool
    """The list is not a continuation of anything that was sent."""


def align(session: Session, request: Request) -> Alignment:
    """Make the session stand at the longest prefix that it knows.

    Raises `OutOfSync` where the host leaves out messages that the session does not hold.
    """
    conversation = session.conversation
    if request.keep > len(conversation):
        raise OutOfSync("The engine does not hold the messages before these.")
    in_step = _holds_last_answer(session, request)
    if request.keep and not in_step:
        raise OutOfSync("The host does not hold the engine's last answer.")
    if in_step and request.keep == len(conversation) and session.current is not None:
        return Alignment(conversation.items + request.items, len(conversation), True, False)
    items = conversation.items[: request.keep] + request.items
    previous = session.current
    keys = [item.key for item in items]
    hosted = next((o for o in request.outcomes if o.kind in HOST_SENT), None)
    matched_id, matched = session.log.longest_match(keys)
    if hosted is not None:
        matched_id = None if hosted.call is None else call_id(session.id, hosted.call)
    folded = session.log.fold(matched_id, session.load_record)
    if hosted is not None:
        # What went out leaned on the edits of that call, whatever was decided after it.
        matched = _common(folded.keys, keys)
        folded.cut(matched)
    replaced = matched == 0 and session.log.newest > 0 and hosted is None
    if replaced:
        _keep_sets(session, folded, previous)
    restore(session, folded, items[:matched], matched_id)
    return Alignment(items, matched, False, replaced)


def _holds_last_answer(session: Session, request: Request) -> bool:
    if session.current is None:
        return False
    applied = [outcome.call for outcome in request.outcomes if outcome.kind == "applied"]
    ordinal = session.log.records[session.current]["ordinal"]
    return bool(applied) and applied[-1] == ordinal


def _common(known: list[Key], asked: list[Key]) -> int:
    """How many messages two lists share from the beginning."""
    for index, (one, other) in enumerate(zip(known, asked, strict=False)):
        if one.address != other.address:
            return index
    return min(len(known), len(asked))


def _keep_sets(session: Session, folded: Folded, previous: str | None) -> None:
    """A replaced history begins a new chain, but what was active and pinned stays so."""
    newest = previous or f"call:{session.id}:{session.log.newest}"
    folded.sets.carry_over(session.log.fold(newest, session.load_record).sets)


def restore(session: Session, folded: Folded, items: list[Item], current: str | None) -> None:
    """Make the session's conversation what the records say it was."""
    conversation = Conversation()
    for item in items:
        conversation.append(item)
    blob = session.store.blob
    for index, row in sorted(folded.rows.items()):
        if index < len(items):
            conversation.render(*Part.from_row(row, blob))
    for index, part in enumerate(conversation.parts):
        if part.base is not None:
            conversation.uses[part.base] = max(index, conversation.uses.get(part.base, 0))
        if part.subject is not None and part.form != "same" and index not in folded.expired:
            conversation.live[index] = part.subject
    session.conversation = conversation
    session.sets = folded.sets
    session.inserts = dict(folded.inserts)
    session.drops = set(folded.drops)
    session.policy_state = folded.state
    session.current, session.stands = current, len(items)

"""What a tool leaves behind, and the last answer of a run, stored as soon as they are there.

The host reports a tool before its result is in any message list. The files are looked at then,
while they are as the tool left them, and the result is stored, so that it cannot get lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from foredeck.context.intake.ingest import Ingest
from foredeck.context.intake.notices import change_of, store_notices
from foredeck.context.intake.toolcalls import make_toolcall, objects_among, same_call
from foredeck.context.messages.items import Block, Item, ToolUse
from foredeck.context.state.nicknames import moved_claims
from foredeck.context.state.pending import Observation
from foredeck.context.state.session import Session
from foredeck.errors import Conflict
from foredeck.model.messages import MessageKey
from foredeck.sources import Sighting, ToolEvent

MAX_ATTEMPTS = 5
"""How often a tool's files are looked at, if another engine stores one of them first each time."""


@dataclass(frozen=True, slots=True)
class _ToolRun:
    """A tool that has just run, and how to find the files that it touched."""

    event: ToolEvent
    item: Item
    """Its result as the message that it will be."""
    look: Callable[[], list[Sighting]]
    full_output: bytes | None = None
    """All that it wrote, where the host has cut the result."""


def observe(
    session: Session,
    event: ToolEvent,
    call_id: str,
    blocks: list[Block],
    full_output: bytes | None = None,
) -> None:
    """Store a tool's result and the files that it touched; committed before this returns.

    `full_output`: all that it wrote, where the host has cut the result.
    """
    look = partial(session.source.after_tool, event)
    _store(session, _ToolRun(event, _item(event, call_id, blocks), look, full_output))


def observe_lost(session: Session, items: list[Item], first_new: int) -> None:
    """Catch up on the results in flight that were never observed, because an engine has ended.

    `first_new`: the first message that no call has held. Older results are past looking at.
    """
    newest = next((i for i in range(len(items) - 1, -1, -1) if items[i].kind == "assistant"), None)
    if newest is None or not session.is_live:
        return
    calls = {call.id: call for call in items[newest].calls}
    for item in items[max(first_new, newest + 1) :]:
        call = calls.get(item.call_id) if item.kind == "result" else None
        if call is None or item.call_id in session.pending.observations:
            continue
        if item.key.address in session.log.known or _is_stored(session, call, item):
            continue
        tool, cwd = item.tool or call.tool, session.cwd
        event = ToolEvent(tool, call.arguments, item.text, item.details, item.failed, cwd)
        run = _ToolRun(event, item, partial(session.source.after_unobserved, event))
        found = _store(session, run)
        session.pending.stale.update(s.object_id for s in found if s.role in ("read", "written"))


def _store(session: Session, run: _ToolRun) -> list[Sighting]:
    """Look at the files, and commit what was seen with the result; returns what was seen.

    Looks again where another engine has stored a version of one of them in between: the same
    bytes would become two versions.
    """
    if not session.workspace.empty:
        session.workspace.commit()
    before = session.pending.notices.copy()
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            return _try_to_store(session, run)
        except Conflict:
            session.workspace.discard()
            session.pending.notices = before.copy()
    return _try_to_store(session, run)


def _try_to_store(session: Session, run: _ToolRun) -> list[Sighting]:
    workspace, call_id, sightings = session.workspace, run.item.call_id, run.look()
    found = objects_among(sightings)
    full = None if run.full_output is None else workspace.put_bytes(run.full_output)
    for sighting in found:
        if sighting.document is not None:
            workspace.put_over(sighting.document, sighting.head)
        _note_change(session, sighting)
    for claim, before in moved_claims(session.store, found):
        workspace.put_over(claim, before)
    is_new = workspace.head(call_id) is None
    if is_new:
        workspace.put(
            make_toolcall(
                session,
                run.item,
                ToolUse(call_id, run.event.tool, dict(run.event.input)),
                call_id,
                found,
                turn_ref=_turn_ref(session),
                position=0,  # as most are; corrected when the list tells
                full_output=full,
            )
        )
    store_notices(session)
    token = None if workspace.empty else workspace.commit()
    session.pending.observations[call_id] = Observation(found, token, full, is_new)
    return sightings


def take_answer(session: Session, item: Item) -> None:
    """Store the answer that ends a run: no request may ever come that has it in its list.

    Committed before this returns. Does nothing where no messages before it are known.
    """
    conversation = session.branch.conversation
    if item.kind != "assistant" or item.calls or not len(conversation):
        session.workspace.blobs.clear()
        return
    ingest = Ingest(session, session.branch.call)
    for before in conversation.items[conversation.last_assistant() + 1 :]:
        if before.kind == "result":
            ingest.keep_extras(before)
        elif before.kind != "assistant":
            ingest.other(before)
    item.turn = conversation.turn
    ingest.assistant(item, {}, new=True)
    ingest.finish()
    session.workspace.discard_known()


def _is_stored(session: Session, call: ToolUse, item: Item) -> bool:
    """Whether an engine that has ended since has observed it."""
    head = session.workspace.head(call.id)
    return head is not None and same_call(session, head, call, item, _turn_ref(session))


def _turn_ref(session: Session) -> str:
    """The turn that the results in flight belong to, as far as is known yet."""
    return f"turn:{session.id}:{session.turns + 1}"


def _note_change(session: Session, sighting: Sighting) -> None:
    """The agent knows what it reads and writes, but not what other tools of its do to a file."""
    ordinal = session.index.by_object.get(sighting.object_id)
    if ordinal is None:
        return
    if sighting.role in ("read", "written"):
        session.pending.notices.withdraw(ordinal)
    elif sighting.document is not None:
        session.pending.notices.add(ordinal, change_of(sighting))


def _item(event: ToolEvent, call_id: str, blocks: list[Block]) -> Item:
    return Item(
        MessageKey(None, ""),
        "result",
        blocks,
        call_id=call_id,
        tool=event.tool,
        failed=event.is_error,
        details=event.details,
        text=event.text,
    )

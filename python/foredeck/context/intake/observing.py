"""What a tool leaves behind, and the last answer of a run, taken in as soon as they are there.

The host tells of a tool before its result is in any message list. The files are looked at then,
while they are as the tool left them, and the result is stored, so that it cannot get lost.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from foredeck.context.intake.ingest import Ingest
from foredeck.context.intake.notices import change_of, store_notices
from foredeck.context.intake.toolcalls import make_toolcall, objects_among, same_call
from foredeck.context.messages.items import Block, Item, ToolUse
from foredeck.context.state.pending import Observation
from foredeck.context.state.session import Session
from foredeck.errors import Conflict
from foredeck.model.messages import MessageKey
from foredeck.sources import Sighting, ToolEvent

Look = Callable[[], list[Sighting]]
MOST_LOOKS = 5
"""How often the files of a tool are looked at, while other engines are faster each time."""


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
    _keep(
        session,
        event,
        _item(event, call_id, blocks),
        partial(session.source.after_tool, event),
        full_output,
    )


def observe_lost(session: Session, items: list[Item], start: int) -> None:
    """What nobody has told of the results in flight, because an engine has ended: now.

    `start`: the first message that no call has held. Older results are past looking at.
    """
    newest = next((i for i in range(len(items) - 1, -1, -1) if items[i].kind == "assistant"), None)
    if newest is None or not session.is_live:
        return
    calls = {call.id: call for call in items[newest].calls}
    for item in items[max(start, newest + 1) :]:
        call = calls.get(item.call_id) if item.kind == "result" else None
        if call is None or item.call_id in session.pending.observations:
            continue
        if item.key.address in session.log.known or _is_stored(session, call, item):
            continue
        tool, cwd = item.tool or call.tool, session.cwd
        event = ToolEvent(tool, call.arguments, item.text, item.details, item.failed, cwd)
        found = _keep(session, event, item, partial(session.source.after_lost, event), None)
        session.pending.stale.update(s.object_id for s in found if s.role in ("read", "written"))


def _keep(
    session: Session, event: ToolEvent, item: Item, look: Look, full_output: bytes | None
) -> list[Sighting]:
    """Look at the files, and commit what was seen with the result; returns what was seen.

    Looks anew where another engine has stored a version of one of them in between: the same
    bytes would become two.
    """
    if not session.workspace.empty:
        session.workspace.commit()
    before = session.pending.notices.copy()
    for _ in range(MOST_LOOKS - 1):
        try:
            return _keep_seen(session, event, item, look(), full_output)
        except Conflict:
            session.workspace.discard()
            session.pending.notices = before.copy()
    return _keep_seen(session, event, item, look(), full_output)


def _keep_seen(
    session: Session,
    event: ToolEvent,
    item: Item,
    sightings: list[Sighting],
    full_output: bytes | None,
) -> list[Sighting]:
    workspace, call_id, found = session.workspace, item.call_id, objects_among(sightings)
    full = None if full_output is None else workspace.put_bytes(full_output)
    for sighting in found:
        if sighting.document is not None:
            workspace.put_over(sighting.document, sighting.head)
        _note(session, sighting)
    is_new = workspace.head(call_id) is None
    if is_new:
        call = ToolUse(call_id, event.tool, dict(event.input))
        workspace.put(
            make_toolcall(
                session,
                item,
                call,
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
    """The answer that ends a run: its turn, which no request may ever tell of.

    Committed before this returns. Does nothing where the session does not stand before it.
    """
    conversation = session.branch.conversation
    if item.kind != "assistant" or item.calls or not len(conversation):
        session.workspace.blobs.clear()
        return
    ingest = Ingest(session, session.branch.call)
    for before in conversation.items[conversation.last_assistant() + 1 :]:
        if before.kind not in ("result", "assistant"):
            ingest.other(before)
    item.turn = conversation.turn
    ingest.assistant(item, {}, new=True)
    ingest.finish()
    session.workspace.discard_known()


def _is_stored(session: Session, call: ToolUse, item: Item) -> bool:
    """Whether an engine that has died since was told of it."""
    head = session.workspace.head(call.id)
    return head is not None and same_call(session, head, call, item, _turn_ref(session))


def _turn_ref(session: Session) -> str:
    """The turn that the results in flight belong to, as far as can be told."""
    return f"turn:{session.id}:{session.turns + 1}"


def _note(session: Session, sighting: Sighting) -> None:
    """The agent knows what it reads and writes; what another tool of its does it may not."""
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

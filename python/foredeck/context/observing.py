"""What a tool leaves behind, and the last answer of a run, taken in as soon as they are there.

The host tells of a tool before its result is in any message list. The files are looked at then,
while they are as the tool left them, and the result is stored, so that it cannot get lost.
"""

from __future__ import annotations

from foredeck.context.ingest import Ingest
from foredeck.context.items import Block, Call, Item, Key
from foredeck.context.notices import keep_untold
from foredeck.context.session import Observation, Session
from foredeck.context.toolcalls import make_toolcall, objects_among
from foredeck.sources import Sighting, ToolEvent


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
    workspace = session.workspace
    found = objects_among(session.source.after_tool(event, pending=workspace.pending))
    full = None if full_output is None else workspace.put_bytes(full_output)
    untold = dict(session.notices)
    for sighting in found:
        if sighting.document is not None:
            workspace.put(sighting.document)
        _note(session, sighting)
    is_new = workspace.head(call_id) is None
    if is_new:
        call = Call(call_id, event.tool, dict(event.input))
        turn_ref = f"turn:{session.id}:{session.turns + 1}"
        item = _item(event, call_id, blocks)
        workspace.put(
            make_toolcall(
                session,
                item,
                call,
                call_id,
                found,
                turn_ref=turn_ref,
                position=0,  # as most are; corrected when the list tells
                full_output=full,
            )
        )
    if session.notices != untold:
        keep_untold(session)
    token = None if workspace.empty else workspace.commit()
    session.observed[call_id] = Observation(found, token, full, is_new)


def take_answer(session: Session, item: Item) -> None:
    """The answer that ends a run: its turn, which no request may ever tell of.

    Committed before this returns. Does nothing where the session does not stand before it.
    """
    conversation = session.conversation
    if item.kind != "assistant" or item.calls or not len(conversation):
        session.workspace.blobs.clear()
        return
    ingest = Ingest(session)
    for before in conversation.items[conversation.last_assistant() + 1 :]:
        if before.kind not in ("result", "assistant"):
            ingest.other(before)
    item.turn = conversation.turn
    ingest.assistant(item, {}, new=True)
    ingest.finish()
    session.workspace.discard_known()


def _note(session: Session, sighting: Sighting) -> None:
    """The agent knows what it reads and writes; what another tool of its does it may not."""
    ordinal = session.index.by_object.get(sighting.object_id)
    if ordinal is None:
        return
    if sighting.role in ("read", "written"):
        session.notices.pop(ordinal, None)
    elif sighting.document is not None:
        session.notices[ordinal] = "deleted" if sighting.state == "deleted" else "changed"


def _item(event: ToolEvent, call_id: str, blocks: list[Block]) -> Item:
    return Item(
        Key(None, ""),
        "result",
        blocks,
        call_id=call_id,
        tool=event.tool,
        failed=event.is_error,
        details=event.details,
        text=event.text,
    )

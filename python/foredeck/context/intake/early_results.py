from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from foredeck.context.intake.file_changes import change_of, store_notices
from foredeck.context.intake.object_writer import ObjectWriter
from foredeck.context.intake.toolcalls import (
    CallPlace,
    index_nested,
    make_toolcall,
    nested_object_id,
    objects_among,
    same_call,
    unseen_nested,
)
from foredeck.context.messages.items import Block, Item, ToolUse
from foredeck.context.state.chat import Chat
from foredeck.context.state.descriptions import moved_claims
from foredeck.context.state.facilities import TurnFields
from foredeck.context.state.objects import Objects
from foredeck.context.state.request import EarlyResult, Inbox
from foredeck.errors import Conflict
from foredeck.model.messages import MessageKey, newest_answer
from foredeck.model.records import turn_id
from foredeck.sources.snapshots import FileSnapshot, ToolEvent, attribute_to_tool, is_unmet
from foredeck.store.protocol import retry_on_conflict


@dataclass(frozen=True, slots=True)
class _ToolRun:
    event: ToolEvent
    item: Item
    look: Callable[[], list[FileSnapshot]]
    object_id: str
    place: CallPlace
    """Turn and position are guesses, corrected when the list comes."""
    full_output: bytes | None = None
    """The whole output, if the host has cut the result."""


def store_early_result(
    objects: Objects,
    chat: Chat,
    inbox: Inbox,
    event: ToolEvent,
    call_id: str,
    blocks: list[Block],
    full_output: bytes | None = None,
    nesting: CallPlace | None = None,
) -> list[FileSnapshot]:
    """Commits a result with the files that it touched, and returns them.

    `nesting`: its place, if it ran inside another call.
    """
    # Most calls are the only one of their turn. `put_in_place` mends it once the list has the call.
    place, object_id = CallPlace(_turn_ref(chat), 0), call_id
    if nesting is not None:
        place = replace(nesting, turn_ref=place.turn_ref)
        object_id = nested_object_id(objects, event, call_id, place)
    item, look = _item(event, call_id, blocks), partial(objects.source.after_tool, event)
    early = _store(objects, inbox, _ToolRun(event, item, look, object_id, place, full_output))
    if nesting is None:
        inbox.early_results[call_id] = early
    else:
        index_nested(objects, chat.branch, object_id, call_id, early.snapshots, early.token)
    return early.snapshots


def store_lost_results(
    objects: Objects, chat: Chat, inbox: Inbox, items: Sequence[Item], first_new: int
) -> None:
    """Stores results in flight that an engine ended without reporting."""
    # For older results it is too late: their files may have changed since.
    newest = newest_answer(items, len(items))
    if newest < 0 or not objects.info.is_live:
        return
    calls = {call.id: call for call in items[newest].calls}
    for item in items[max(first_new, newest + 1) :]:
        call = calls.get(item.call_id) if item.kind == "result" else None
        if call is None or item.call_id in inbox.early_results:
            continue
        head, turn_ref = objects.workspace.head(call.id), _turn_ref(chat)
        is_stored = head is not None and same_call(objects.info, inbox, head, call, item, turn_ref)
        if item.key.address in chat.log.known or is_stored:
            continue
        tool, cwd = item.tool or call.tool, objects.info.cwd
        event = ToolEvent(tool, call.arguments, item.text, item.details, item.failed, cwd)
        look = partial(_look_again, objects, event, item)
        place = CallPlace(turn_ref, 0)
        early = _store(objects, inbox, _ToolRun(event, item, look, item.call_id, place))
        inbox.early_results[item.call_id] = early
        # Some time has passed since the tool ended: what is on the disk now may not be its work.
        stale = (s.object_id for s in early.snapshots if s.role in ("read", "written"))
        inbox.stale.update(stale)


def _look_again(objects: Objects, event: ToolEvent, item: Item) -> list[FileSnapshot]:
    snapshots = {s.object_id: s for s in objects.source.after_unobserved(event)}
    for nested in unseen_nested(objects, item):
        for snapshot in objects.source.after_tool(nested):
            snapshots.setdefault(snapshot.object_id, snapshot)
    return [*snapshots.values()]


def _store(objects: Objects, inbox: Inbox, run: _ToolRun) -> EarlyResult:
    # By itself: what a conflict discards below must be the early result alone.
    if not objects.workspace.empty:
        objects.workspace.commit()
    before, stored = dict(inbox.notices.changes), inbox.stored

    def attempt() -> EarlyResult:
        # One that was given up has changed them already.
        objects.workspace.discard()
        inbox.notices.changes, inbox.stored = dict(before), stored
        return _try_to_store(objects, inbox, run)

    # Looked at again where another engine has stored a version of one of them in between: the same
    # bytes would become two versions.
    return retry_on_conflict(attempt, Conflict("the files of a tool change all the time"))


def _try_to_store(objects: Objects, inbox: Inbox, run: _ToolRun) -> EarlyResult:
    workspace, snapshots = objects.workspace, objects_among(run.look())
    full = None if run.full_output is None else workspace.put_bytes(run.full_output)
    # An id that is taken may be that of another call (`call_0` of an earlier answer), or of this
    # one, reported twice. Only the list can tell (`ToolRound`): until then just the files are
    # stored.
    is_new = workspace.head(run.object_id) is None
    if is_new:
        attribute_to_tool(snapshots, run.object_id)
    for snapshot in snapshots:
        if snapshot.document is not None:
            workspace.put_over(snapshot.document, snapshot.head)
        _note_change(objects, inbox, snapshot, run)
    for claim, before in moved_claims(objects.store, snapshots):
        workspace.put_over(claim, before)
    if is_new:
        workspace.put(
            make_toolcall(
                objects,
                run.item,
                ToolUse(run.item.call_id, run.event.tool, dict(run.event.input)),
                run.object_id,
                snapshots,
                run.place,
                full_output=full,
            )
        )
    store_notices(objects, inbox)
    token = None if workspace.empty else workspace.commit()
    return EarlyResult(snapshots, token, full, is_new)


def take_answer(
    objects: Objects, chat: Chat, inbox: Inbox, item: Item, turn_fields: TurnFields
) -> None:
    # No request may ever come that has this answer in its list: the user may leave now.
    plan = chat.branch.plan
    if item.kind != "assistant" or item.calls or not len(plan):
        objects.workspace.blobs.clear()
        return
    writer = ObjectWriter(objects, chat, inbox, turn_fields, chat.branch.call)
    for before in plan.items[plan.last_assistant() + 1 :]:
        if before.kind == "result":
            writer.keep_extras(before)
        elif before.kind != "assistant":
            writer.other(before)
    item.turn = plan.turn
    writer.assistant(item, {}, new=True)
    writer.finish()
    objects.workspace.commit_if_new()


def _turn_ref(chat: Chat) -> str:
    return turn_id(chat.info.id, chat.turns + 1)


def _note_change(objects: Objects, inbox: Inbox, snapshot: FileSnapshot, run: _ToolRun) -> None:
    # The model knows what it reads and writes, but not what its commands do to a file, nor what a
    # script of its has read.
    ordinal = objects.index.by_object.get(snapshot.object_id)
    if ordinal is None:
        return
    nested = run.place.parent_ref is not None
    if snapshot.role == "written" or (snapshot.role == "read" and not nested):
        inbox.notices.withdraw(ordinal)
    elif snapshot.document is not None and not is_unmet(snapshot):
        inbox.notices.add(ordinal, change_of(snapshot))


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
        took_ms=event.took_ms,
    )

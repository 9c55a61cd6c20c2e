"""Calls that a tool makes while it runs, such as those of a script in code mode.

Their results go to the tool that made them, and no message list ever has them. So they join the
index and the pool when they have run. The result of the call inside which they ran names them: with
it they join the pool on whichever branch that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foredeck.context.intake.toolcalls import CallPlace, put_in_place, see_file
from foredeck.context.messages.items import Item
from foredeck.context.state.chat import Branch
from foredeck.context.state.objects import Objects
from foredeck.model.documents import chat_id
from foredeck.model.ids import uuid7
from foredeck.model.messages import pack
from foredeck.model.own_tools import CONTEXT_TOOLS
from foredeck.model.sources import path_of
from foredeck.sources.snapshots import FileSnapshot, ToolEvent
from foredeck.store.protocol import Head, Token


@dataclass(frozen=True, slots=True)
class Nesting:
    """Inside which call a tool ran: the host's id of it, and which of its calls this is, from 0."""

    parent: str
    position: int | None


def nested_object_id(objects: Objects, event: ToolEvent, call_id: str, place: CallPlace) -> str:
    """The id for the object of a nested call: the host's, unless that names another call already,
    as where a model counts its calls from `call_0` in every answer."""
    head = objects.workspace.head(call_id)
    if head is None:
        return call_id
    fields = head.fields
    same = (
        (fields.get("chat_ref"), fields.get("turn_ref"))
        == (chat_id(objects.info.id), place.turn_ref)
        and fields.get("tool") == event.tool
        and (fields.get("args") or {}) == pack(dict(event.input), {})
    )
    return call_id if same else uuid7()


def index_nested(
    objects: Objects,
    branch: Branch,
    object_id: str,
    call_id: str,
    snapshots: Sequence[FileSnapshot],
    token: Token | None,
) -> None:
    """Take a nested call and the files that it touched into index and pool; the index is committed
    before this returns.

    `token`: the transaction that has stored them, None where all of them were stored before.
    """
    files = [see_file(objects, snapshot, token).ordinal for snapshot in snapshots]
    head = objects.workspace.head(object_id)
    if head is not None:
        _show(branch, head, [*files, objects.see_head(head, call_id).ordinal])
    if not objects.workspace.empty:
        objects.workspace.commit()


def list_nested(objects: Objects, branch: Branch, item: Item, parent: str, turn_ref: str) -> None:
    """Take what ran inside the call that `item` answers into the pool, with its turn and parent
    set right. `parent`: id of that call's object.

    A call that no engine has seen run is not stored, and is passed over.
    """
    for call_id in item.nested:
        head = _head_of(objects, call_id)
        if head is None or head.type != "toolcall":
            continue
        inside = head.fields.get("parent_ref")
        place = CallPlace(
            turn_ref, head.fields.get("position"), parent if inside == item.call_id else inside
        )
        entry = put_in_place(objects, head, call_id, place)
        _show(branch, head, [*_files_of(objects, head), entry.ordinal])


def _head_of(objects: Objects, call_id: str) -> Head | None:
    """The object of a nested call: the newest that the session knows under this id."""
    ordinal = objects.index.by_label.get(call_id)
    object_id = call_id if ordinal is None else objects.index.entries[ordinal].object
    return objects.workspace.head(object_id)


def _files_of(objects: Objects, head: Head) -> list[int]:
    """The files that a stored call touched. Those that the session knows it may know better."""
    index, found = objects.index, []
    for object_id in head.fields.get("file_refs") or ():
        file = None if object_id in index.by_object else objects.store.head(object_id)
        if file is not None:
            objects.see_head(file, path_of(file.fields) or "")
        if object_id in index.by_object:
            found.append(index.by_object[object_id])
    return found


def _show(branch: Branch, head: Head, ordinals: Iterable[int]) -> None:
    """A context tool has decided what to show itself."""
    if head.fields.get("tool") not in CONTEXT_TOOLS:
        for ordinal in ordinals:
            branch.sets.show(ordinal)

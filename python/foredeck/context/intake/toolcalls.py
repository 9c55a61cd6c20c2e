"""Tool calls as objects.

Nested calls are in no message list, so they join index and pool when they have run.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foredeck.context.messages.items import Item, NestedUse, ToolUse, args_display
from foredeck.context.state.chat import Branch
from foredeck.context.state.index import Entry, SeenVersion, versions_seen
from foredeck.context.state.objects import PENDING, Objects, SessionInfo, Workspace
from foredeck.context.state.request import Inbox
from foredeck.model.documents import Document, Provenance, ToolcallDocument, chat_id
from foredeck.model.identity import hash_text, uuid7
from foredeck.model.messages import pack
from foredeck.model.own_tools import CONTEXT_TOOLS
from foredeck.model.records import SAME_TRANSACTION, VersionRef
from foredeck.model.sources import path_of
from foredeck.sources.snapshots import AT_MS, FileSnapshot, ToolEvent
from foredeck.store.protocol import Head, Token

TOOL_ORIGIN = "toolcall"

_VERIFIED = {"content_hash", "text_hash", "metadata_view_hash"}


@dataclass(frozen=True, slots=True)
class CallPlace:
    """`position` counts from 0. `parent_ref`: the host's id of the outer call, later its
    object's."""

    turn_ref: str | None
    position: int | None
    parent_ref: str | None = None


def make_toolcall(
    objects: Objects,
    item: Item,
    call: ToolUse,
    object_id: str,
    snapshots: Sequence[FileSnapshot],
    place: CallPlace,
    *,
    token: Token | None = None,
    full_output: str | None = None,
) -> ToolcallDocument:
    """A result's sealed object. `token`: the transaction with the snapshots, None for this one."""
    blobs, version = objects.workspace.blobs, _shown_by_us(objects, item)
    has_text = any(block.get("type") == "text" for block in item.blocks)
    images = [
        _image_blob(objects.workspace, block["data"])
        for block in item.blocks
        if block.get("type") == "image" and isinstance(block.get("data"), str)
    ]
    document = ToolcallDocument(
        id=object_id,
        provenance=Provenance(
            origin=objects.info.origin or TOOL_ORIGIN,
            generator="tool",
            # Of a history it is stored long after it was written.
            **({AT_MS: item.time_ms} if objects.info.origin and item.time_ms else {}),
        ),
        content=item.text if has_text or not images else None,
        tool=item.tool or call.tool,
        args=pack(call.arguments, blobs),
        args_display=args_display(call.arguments, objects.info.cwd),
        status="fail" if item.failed else "ok",
        took_ms=item.took_ms,
        chat_ref=chat_id(objects.info.id),
        turn_ref=place.turn_ref,
        position=place.position,
        parent_ref=place.parent_ref,
        file_refs=[snapshot.object_id for snapshot in snapshots]
        if version is None
        else [version.object],
        file_version_ref=(
            _file_ref(objects, item, snapshots, token) if version is None else version.model_dump()
        ),
        provider_call_id=call.id,
        details=pack(item.details, blobs),
        images=images,
        full_output=full_output,
    )
    return document.seal()


def put_in_place(objects: Objects, head: Head, label: str, place: CallPlace) -> Entry:
    """A stored result's entry, its place corrected unless it is another session's."""
    # The place was a guess when the tool ran: only the list of messages says it.
    fields = head.fields
    stored = CallPlace(fields.get("turn_ref"), fields.get("position"), fields.get("parent_ref"))
    if stored == place or fields.get("chat_ref") != chat_id(objects.info.id):
        return objects.see_head(head, label)
    document = objects.store.get(head.id, ToolcallDocument)
    if document is None:
        return objects.see_head(head, label)
    document.turn_ref, document.position = place.turn_ref, place.position
    document.parent_ref = place.parent_ref
    # The new version is in another transaction than the file that it pins.
    if document.file_version_ref and document.file_version_ref.get("token") == SAME_TRANSACTION:
        document.file_version_ref["token"] = head.token
    objects.workspace.put(document.seal())
    return objects.see_document(document, label)


def same_call(
    info: SessionInfo, inbox: Inbox, head: Head, call: ToolUse, result: Item | None, turn_id: str
) -> bool:
    # Some local models count from `call_0` in every answer, and so in every session: an id counts
    # only where tool, arguments and, in a session that this one was forked from, the result agree.
    fields = head.fields
    if head.type != "toolcall" or fields.get("tool") != call.tool:
        return False
    if (fields.get("args") or {}) != pack(call.arguments, {}):
        return False
    if fields.get("chat_ref") == chat_id(info.id):
        observed = inbox.early_results.get(call.id)
        is_observed = observed is not None and observed.stored
        return is_observed or fields.get("turn_ref") in (None, turn_id)
    if fields.get("chat_ref") not in {chat_id(id) for id in info.ancestors}:
        return False
    return result is None or fields.get("text_hash") == hash_text(result.text)


def see_file(objects: Objects, snapshot: FileSnapshot, token: Token | None) -> Entry:
    """A file's index entry; its new version is written unless `token` has stored it."""
    document = snapshot.document
    if document is not None:
        if token is None:
            objects.workspace.put(document)
        elif document.text_hash is None and (newer := _newer_entry(objects, document, token)):
            return newer
        return objects.see(SeenVersion.of(document, snapshot.path, token or SAME_TRANSACTION))
    head = snapshot.head or objects.workspace.head(snapshot.object_id)
    if head is None:
        raise AssertionError(f"{snapshot.path}: sighted, but neither stored nor new")
    return objects.see_head(head, snapshot.path)


def objects_among(snapshots: Sequence[FileSnapshot]) -> list[FileSnapshot]:
    """Snapshots of files that exist or have existed, without folders."""
    return [s for s in snapshots if s.document is not None or s.head is not None]


def reads_file(item: Item, snapshot: FileSnapshot) -> bool:
    """Whether a result is the file's text."""
    if snapshot.role != "read" or item.failed or item.has_image:
        return False
    return snapshot.state in ("text", "listed", "huge")


def nested_object_id(objects: Objects, event: ToolEvent, call_id: str, place: CallPlace) -> str:
    """Object id of a nested call: the host's, unless another call has it."""
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
    """Adds a nested call and its files to index and pool, and commits."""
    files = [see_file(objects, snapshot, token).ordinal for snapshot in snapshots]
    head = objects.workspace.head(object_id)
    if head is not None:
        _show(branch, head, [*files, objects.see_head(head, call_id).ordinal])
    if not objects.workspace.empty:
        objects.workspace.commit()


def list_nested(objects: Objects, branch: Branch, item: Item, parent: str, turn_ref: str) -> None:
    """Adds the calls nested in `item`'s to the pool, with turn and parent corrected."""
    for call in item.nested:
        head = _head_of(objects, call)
        if head is None:
            continue
        inside = head.fields.get("parent_ref")
        place = CallPlace(
            turn_ref, head.fields.get("position"), parent if inside == item.call_id else inside
        )
        entry = put_in_place(objects, head, call.id, place)
        _show(branch, head, [*_files_of(objects, head), entry.ordinal])


def unseen_nested(objects: Objects, item: Item) -> list[ToolEvent]:
    """Nested calls that no engine has seen run."""
    return [
        ToolEvent(
            call.tool,
            call.arguments,
            "",
            is_error=call.failed,
            cwd=objects.info.cwd,
            is_unheard=True,
        )
        for call in item.nested
        if _head_of(objects, call) is None
    ]


def _newer_entry(objects: Objects, document: Document, token: Token) -> Entry | None:
    # Results are taken in by their order in the list, but tools that run side by side end in any
    # order: what `ls` has listed may have been stored before `read` looked at the same file.
    ordinal = objects.index.by_object.get(document.id)
    if ordinal is None:
        return None
    entry = objects.index.entries[ordinal]
    newest = entry.newest
    is_same = newest.content_hash == document.content_hash
    if is_same or newest.token in (token, SAME_TRANSACTION):
        return None
    order = objects.store.transactions([token, Token(newest.token)])
    return entry if len(order) == 2 and order[-1].token == newest.token else None


def _file_ref(
    objects: Objects, item: Item, snapshots: Sequence[FileSnapshot], token: Token | None
) -> dict[str, Any] | None:
    for snapshot in snapshots:
        is_image = item.has_image and snapshot.role == "read" and not item.failed
        if is_image or reads_file(item, snapshot):
            version = _version(snapshot, token)
            ordinal = objects.index.version_of(snapshot.object_id, version.get("content_hash"))
            return {"object": snapshot.object_id, "version": ordinal, **version}
    return None


def decision_in(objects: Objects, item: Item) -> tuple[Entry, Mapping[str, Any]] | None:
    """The object and decision in a context tool's result; None without a decision."""
    decision = (item.details or {}).get("foredeck") if isinstance(item.details, dict) else None
    if item.failed or not isinstance(decision, dict):
        return None
    ordinal = decision.get("ordinal")
    entry = objects.index.entries.get(ordinal) if isinstance(ordinal, int) else None
    # A decision about another object than the handle names here comes from elsewhere.
    if entry is None or entry.object != decision.get("object"):
        return None
    return entry, decision


def _shown_by_us(objects: Objects, item: Item) -> VersionRef | None:
    outcome = decision_in(objects, item) if item.tool in CONTEXT_TOOLS else None
    if outcome is None or outcome[0].type != "file" or "version" not in outcome[1]:
        return None
    entry, decision = outcome
    versions = [entry.newest, *versions_seen(objects.store, objects.info.id, entry.ordinal)]
    # A version that is named by its hash may have another number here; of a part no hash is known.
    text_hash, version = decision.get("text_hash"), decision["version"]
    exact = (
        r for r in reversed(versions) if text_hash in (None, r.text_hash) and r.version == version
    )
    return next(exact, None) or next((r for r in versions if r.text_hash == text_hash), None)


def _version(snapshot: FileSnapshot, token: Token | None) -> dict[str, Any]:
    document, head = snapshot.document, snapshot.head
    fields: Mapping[str, Any]
    if document is not None:
        fields, own = document.model_dump(include=_VERIFIED), token or SAME_TRANSACTION
    elif head is not None:
        fields, own = head.fields, SAME_TRANSACTION if head.token == PENDING else head.token
    else:
        return {}
    return {"token": own, **{name: fields.get(name) for name in sorted(_VERIFIED)}}


def _image_blob(workspace: Workspace, encoded: str) -> str:
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        # No image, but nothing that a tool has answered may get lost.
        data = encoded.encode(errors="surrogatepass")
    return workspace.put_bytes(data)


def _head_of(objects: Objects, call: NestedUse) -> Head | None:
    ordinal = objects.index.by_label.get(call.id)
    object_id = call.id if ordinal is None else objects.index.entries[ordinal].object
    head = objects.workspace.head(object_id)
    if head is None or head.type != "toolcall" or head.fields.get("tool") != call.tool:
        return None
    # An id that came again names another call. Arguments that the host has left out tell nothing.
    is_other = call.arguments and (head.fields.get("args") or {}) != pack(call.arguments, {})
    return None if is_other else head


def _files_of(objects: Objects, head: Head) -> list[int]:
    # What the session knows of a file already may be newer than what the call has seen.
    index, ordinals = objects.index, []
    for object_id in head.fields.get("file_refs") or ():
        file = None if object_id in index.by_object else objects.store.head(object_id)
        if file is not None:
            objects.see_head(file, path_of(file.fields) or "")
        if object_id in index.by_object:
            ordinals.append(index.by_object[object_id])
    return ordinals


def _show(branch: Branch, head: Head, ordinals: Iterable[int]) -> None:
    # A context tool has decided itself what joins the pool.
    if head.fields.get("tool") not in CONTEXT_TOOLS:
        for ordinal in ordinals:
            branch.sets.show(ordinal)

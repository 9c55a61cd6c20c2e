"""Content by version, part or field."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from foredeck.context import wording
from foredeck.context.compactions import turns_of, turns_of_branch
from foredeck.context.intake.file_changes import renamed
from foredeck.context.state.chat import Chat, turn_of
from foredeck.context.state.handles import Wanted
from foredeck.context.state.index import (
    Entry,
    load_version,
    version_at_call,
    version_seen,
    version_with_hash,
    versions_seen,
)
from foredeck.context.state.objects import Objects, SessionInfo
from foredeck.context.state.stored_chat import render_chat
from foredeck.context.wording import WHY_NO_CONTENT
from foredeck.errors import Corrupt, ToolError
from foredeck.model.documents import ChatDocument, Document, chat_id
from foredeck.model.identity import hash_text
from foredeck.model.names import Slice
from foredeck.model.observations import CompactionDocument
from foredeck.model.records import SAME_TRANSACTION
from foredeck.notes.named_parts import field_text, section_place
from foredeck.store.store import Store

_HANDLE_SAID = re.compile(r"(?<![\w@:.])(?<!^--- toolcall )(?<! in )@\d+\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Content:
    """A version's text, or why there is none."""

    text: str | None
    text_hash: str | None
    version: int
    why: str = ""
    images: tuple[str, ...] = ()
    """Blob addresses."""


def wanted_content(objects: Objects, chat: Chat, wanted: Wanted) -> Content:
    """The newest, an old, or a past call's version.

    Raises `ToolError` if the session lacks the version, call or part, or it is damaged.
    """
    try:
        if wanted.slice is not None:
            return _part(objects, chat, wanted, wanted.slice)
        document, version = _chosen(objects.store, objects.info, wanted)
        if wanted.field is not None:
            name = f"@{wanted.entry.ordinal}"
            text = field_text(document, wanted.field, name, objects.store.blob)
            return Content(text, None, version)
        if (moved := _moved(objects, wanted)) is not None:
            return Content(None, None, version, f"it moved, activate @{moved.ordinal} instead")
        content = _content(objects, document, version)
        if content.why == WHY_NO_CONTENT["deleted"]:
            content = replace(content, why=_why_deleted(objects, wanted.entry, version))
        if wanted.section is None or content.text is None:
            return content
        place = section_place(content.text, wanted.section, f"@{wanted.entry.ordinal}")
        return Content(content.text[slice(*place)], None, version)
    except Corrupt as error:
        raise ToolError(f"@{wanted.entry.ordinal} cannot be shown: {error}.") from error


def _part(objects: Objects, chat: Chat, wanted: Wanted, part: Slice) -> Content:
    entry = wanted.entry
    is_compacted = entry.type == "compaction"
    gone = objects.store.get(entry.object, CompactionDocument) if is_compacted else None
    if part.unit == "message" and entry.type == "chat":
        return _turns_stored(objects, entry, part)
    if part.unit != "char":
        if entry.object in map(chat_id, (objects.info.id, *objects.info.ancestors)):
            return Content(turns_of_branch(objects, chat, part.first, part.last), None, 1)
        if entry.type == "chat":
            return _turns_stored(objects, entry, part)
        if entry.type in ("observation", "reflection"):
            return Content(_turns_behind(objects, chat, entry, part), None, entry.newest.version)
        if gone is None:
            raise ToolError(f"@{entry.ordinal} is a {entry.type}: only a chat has turns.")
        turns = turns_of(gone, part.first, part.last, objects.store.blob)
        turns = _with_owner(objects.info, gone.session, turns)
        return Content(turns, None, entry.newest.version)
    whole = wanted_content(objects, chat, replace(wanted, slice=None))
    text = whole.text
    if gone is not None:
        text = turns_of(gone, gone.first_turn, gone.last_turn, objects.store.blob)
    if text is None:
        why = "it is an image" if whole.images else whole.why
        raise ToolError(wording.no_content(entry.ordinal, why))
    if part.first > len(text) or part.last < part.first:
        raise ToolError(f"@{entry.ordinal} has {len(text):,} characters.")
    return Content(text[max(0, part.first - 1) : part.last], None, whole.version)


def _turns_behind(objects: Objects, chat: Chat, entry: Entry, part: Slice) -> str:
    if entry.object not in chat.branch.plan.observed:
        raise ToolError(
            f"@{entry.ordinal} replaces no part of this chat now. Turns of it can be "
            f'had by "{chat_id(objects.info.id)} turns A-B".'
        )
    first, until = chat.branch.plan.observed[entry.object]
    items = chat.branch.plan.items
    turns = turn_of(chat, items[first]), turn_of(chat, items[until - 1])
    if part.last < turns[0] or part.first > turns[1]:
        there = f"{turns[0]} to {turns[1]}"
        raise ToolError(
            f"There are no turns {part.first}-{part.last} in it: it holds turns {there}."
        )
    return turns_of_branch(objects, chat, max(part.first, turns[0]), min(part.last, turns[1]))


def _turns_stored(objects: Objects, entry: Entry, part: Slice) -> Content:
    head = objects.workspace.head(entry.object)
    count = 0 if head is None else head.view(ChatDocument).turn_count
    text = _chat_text(objects, entry.object, count, part)
    if not text:
        range_text = f"{part.unit}s {part.first}-{part.last}"
        raise ToolError(f"There are no {range_text} in @{entry.ordinal}.")
    return Content(text, None, entry.newest.version)


def _chat_text(objects: Objects, id: str, count: int, asked: Slice | None = None) -> str:
    """A chat with calls by handle; by id if the session has none."""
    owner = id.removeprefix(chat_id(""))
    text = render_chat(objects.store, owner, count, asked, objects.index.by_object)
    return _with_owner(objects.info, owner, text)


def _with_owner(info: SessionInfo, owner: str, text: str) -> str:
    # The handles in the text are not replaced: what was said stays word for word.
    is_ours = owner in (info.id, *info.ancestors)
    if is_ours or _HANDLE_SAID.search(text) is None:
        return text
    return f"{wording.handles_of(owner)}\n{text}"


def _chosen(store: Store, info: SessionInfo, wanted: Wanted) -> tuple[Document | None, int]:
    """The named version, a call's, or the newest seen."""
    entry = wanted.entry
    if wanted.hash is not None:
        return version_with_hash(store, entry.object, wanted.hash), entry.newest.version
    if wanted.call is not None:
        ref = version_at_call(store, info.id, entry.ordinal, wanted.call)
    elif wanted.version is not None and wanted.version != entry.newest.version:
        ref = version_seen(store, info.id, entry.ordinal, wanted.version)
    else:
        return _newest(store, info, entry), entry.newest.version
    return load_version(store, ref), ref.version


def _newest(store: Store, info: SessionInfo, entry: Entry) -> Document | None:
    # Not the newest of the store: another session may have stored a version since.
    ref = entry.newest
    if ref.token != SAME_TRANSACTION:
        return load_version(store, ref)
    for stored in versions_seen(store, info.id, entry.ordinal):
        if stored.version == ref.version:
            return load_version(store, stored)
    # Met in this very tool call: its index entry is not committed yet.
    return store.get(entry.object, Document)


def _moved(objects: Objects, wanted: Wanted) -> Entry | None:
    newest = wanted.version in (None, wanted.entry.newest.version)
    return renamed(objects, wanted.entry) if newest and wanted.call is None else None


def _why_deleted(objects: Objects, entry: Entry, version: int) -> str:
    refs = versions_seen(objects.store, objects.info.id, entry.ordinal)
    with_text = [ref.version for ref in refs if ref.text_hash and ref.version < version]
    return wording.deleted(max(with_text, default=None))


def _content(objects: Objects, document: Document | None, version: int) -> Content:
    if document is None:
        return Content(None, None, version, "it is not stored")
    text, fields = document.content, document.model_extra or {}
    if document.type == "chat":
        text = _chat_text(objects, document.id, fields["turn_count"])
    if document.type == "compaction" and text is not None:
        text = _with_owner(objects.info, fields["session"], text)
    images = tuple(fields.get("images") or ())
    if text is None and not images:
        by_type = document.type in ("session", "pointer")
        state = document.type if by_type else str(fields.get("state") or "")
        return Content(None, None, version, WHY_NO_CONTENT.get(state, "it has none"))
    text_hash = None if text is None else hash_text(text)
    return Content(text, text_hash, version, images=images)

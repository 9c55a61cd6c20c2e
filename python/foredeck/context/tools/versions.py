"""Finding a version of an object by what a session calls it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from foredeck.context import wording
from foredeck.context.intake.renames import renamed
from foredeck.context.state.handles import Wanted
from foredeck.context.state.index import Entry
from foredeck.context.state.session import Session
from foredeck.context.tools.version_refs import (
    load_version,
    version_at_call,
    version_seen,
    version_with_hash,
    versions_seen,
)
from foredeck.context.window.compactions import turn_of, turns_of, turns_of_branch
from foredeck.errors import Corrupt, ToolError
from foredeck.model.canonical import hash_text
from foredeck.model.compactions import CompactionDocument
from foredeck.model.documents import Document, chat_id
from foredeck.model.places import Slice
from foredeck.model.records import SAME_TRANSACTION
from foredeck.notes.named_parts import field_text, section_place

WHY_NO_CONTENT = {
    "binary": "it is not text",
    "huge": "it is too large; read it with offset and limit",
    "listed": "it was only listed; it cannot be reached from here",
    "deleted": "it was deleted; an older version may be had, such as v1",
    "unreadable": "it cannot be read",
    "special": "it is not a regular file",
    "pointer": "it is only pointed to, and nothing is fetched; read it with a tool of yours",
    "session": "what was said in it is its chat (chat:ID)",
}

_HANDLE_SAID = re.compile(r"(?<![\w@:.])(?<!^--- toolcall )(?<! in )@\d+\b", re.MULTILINE)
"""A handle that is not the one of a call in a chat, which is this session's."""


@dataclass(frozen=True, slots=True)
class Content:
    """A version's text, or why there is none."""

    text: str | None
    text_hash: str | None
    version: int
    why: str = ""
    images: tuple[str, ...] = ()
    """Addresses of the blobs with its images, of a tool's result."""


def content_of(session: Session, wanted: Wanted) -> Content:
    """The content that was asked for: the newest, an old version, or the one as of a call.

    Raises `ToolError` for a version, call or part that the session does not have, and for one
    that is damaged in the store.
    """
    try:
        if wanted.slice is not None:
            return _part(session, wanted, wanted.slice)
        document, version = _chosen(session, wanted)
        if wanted.field is not None:
            name = f"@{wanted.entry.ordinal}"
            text = field_text(document, wanted.field, name, session.objects.store.blob)
            return Content(text, None, version)
        if (moved := _moved(session, wanted)) is not None:
            return Content(None, None, version, f"it moved, activate @{moved.ordinal} instead")
        content = _content(session, document, version)
        if wanted.section is None or content.text is None:
            return content
        place = section_place(content.text, wanted.section, f"@{wanted.entry.ordinal}")
        return Content(content.text[slice(*place)], None, version)
    except Corrupt as error:
        raise ToolError(f"@{wanted.entry.ordinal} cannot be shown: {error}.") from error


def _part(session: Session, wanted: Wanted, part: Slice) -> Content:
    """A range of turns of a chat, or a range of characters of any text."""
    entry = wanted.entry
    is_chat = entry.type == "compaction"
    chat = session.objects.store.get(entry.object, CompactionDocument) if is_chat else None
    if part.unit == "message" and entry.type == "chat":
        return _turns_stored(session, entry, part)
    if part.unit != "char":
        if entry.object in map(chat_id, (session.info.id, *session.info.ancestors)):
            return Content(turns_of_branch(session, part.first, part.last), None, 1)
        if entry.type == "chat":
            return _turns_stored(session, entry, part)
        if entry.type in ("observation", "reflection"):
            return Content(_turns_behind(session, entry, part), None, entry.newest.version)
        if chat is None:
            raise ToolError(f"@{entry.ordinal} is a {entry.type}: only a chat has turns.")
        turns = turns_of(chat, part.first, part.last, session.objects.store.blob)
        turns = _with_owner(session, chat.session, turns)
        return Content(turns, None, entry.newest.version)
    whole = content_of(session, replace(wanted, slice=None))
    text = whole.text
    if chat is not None:
        text = turns_of(chat, chat.first_turn, chat.last_turn, session.objects.store.blob)
    if text is None:
        why = "it is an image" if whole.images else whole.why
        raise ToolError(wording.no_content(entry.ordinal, why))
    if part.first > len(text) or part.last < part.first:
        raise ToolError(f"@{entry.ordinal} has {len(text):,} characters.")
    return Content(text[max(0, part.first - 1) : part.last], None, whole.version)


def _turns_behind(session: Session, entry: Entry, part: Slice) -> str:
    """Turns of the messages that an observation or a reflection covers, word for word."""
    if entry.object not in session.chat.branch.plan.observed:
        raise ToolError(
            f"@{entry.ordinal} stands for nothing in this chat as it is now. Turns of it can be "
            f'had by "{chat_id(session.info.id)} turns A-B".'
        )
    first, until = session.chat.branch.plan.observed[entry.object]
    items = session.chat.branch.plan.items
    turns = turn_of(session, items[first]), turn_of(session, items[until - 1])
    if part.last < turns[0] or part.first > turns[1]:
        there = f"{turns[0]} to {turns[1]}"
        raise ToolError(
            f"There are no turns {part.first}-{part.last} in it: it holds turns {there}."
        )
    return turns_of_branch(session, max(part.first, turns[0]), min(part.last, turns[1]))


def _turns_stored(session: Session, entry: Entry, part: Slice) -> Content:
    """Turns of a stored session's chat, or messages of it, on whichever of its branches."""
    head = session.objects.workspace.head(entry.object)
    count = 0 if head is None else head.fields["turn_count"]
    text = _chat_text(session, entry.object, count, part)
    if not text:
        asked = f"{part.unit}s {part.first}-{part.last}"
        raise ToolError(f"There are no {asked} in @{entry.ordinal}.")
    return Content(text, None, entry.newest.version)


def _chat_text(session: Session, chat: str, count: int, asked: Slice | None = None) -> str:
    """A chat with its calls under this session's handles; those that it has none for by their ids.
    Empty where there are no such turns."""
    owner = chat.removeprefix(chat_id(""))
    return _with_owner(
        session,
        owner,
        session.chat.stored.text(owner, count, asked, session.objects.index.by_object),
    )


def _with_owner(session: Session, owner: str, text: str) -> str:
    """A text of a session's, with a line on what its handles mean here, where that is another one:
    what was said stays word for word."""
    is_ours = owner in (session.info.id, *session.info.ancestors)
    if is_ours or _HANDLE_SAID.search(text) is None:
        return text
    return f"{wording.handles_of(owner)}\n{text}"


def _chosen(session: Session, wanted: Wanted) -> tuple[Document | None, int]:
    """The version that is named, the one as of a call, or the newest seen; and its number."""
    store, entry = session.objects.store, wanted.entry
    if wanted.hash is not None:
        return version_with_hash(store, entry.object, wanted.hash), entry.newest.version
    if wanted.call is not None:
        ref = version_at_call(store, session.info.id, entry.ordinal, wanted.call)
    elif wanted.version is not None and wanted.version != entry.newest.version:
        ref = version_seen(store, session.info.id, entry.ordinal, wanted.version)
    else:
        return _newest(session, entry), entry.newest.version
    return load_version(store, ref), ref.version


def _newest(session: Session, entry: Entry) -> Document | None:
    """What the session has seen last, though others may have stored a newer version since."""
    store, ref = session.objects.store, entry.newest
    if ref.token != SAME_TRANSACTION:
        return load_version(store, ref)
    for stored in versions_seen(store, session.info.id, entry.ordinal):
        if stored.version == ref.version:
            return load_version(store, stored)
    # Met in this very tool call: its index entry is not committed yet.
    return store.get(entry.object, Document)


def _moved(session: Session, wanted: Wanted) -> Entry | None:
    """What a file has become, where its newest version is asked for."""
    newest = wanted.version in (None, wanted.entry.newest.version)
    return renamed(session, wanted.entry) if newest and wanted.call is None else None


def _content(session: Session, document: Document | None, version: int) -> Content:
    if document is None:
        return Content(None, None, version, "it is not stored")
    text, fields = document.content, document.model_extra or {}
    if document.type == "chat":
        text = _chat_text(session, document.id, fields["turn_count"])
    if document.type == "compaction" and text is not None:
        text = _with_owner(session, fields["session"], text)
    images = tuple(fields.get("images") or ())
    if text is None and not images:
        by_type = document.type in ("session", "pointer")
        state = document.type if by_type else str(fields.get("state") or "")
        return Content(None, None, version, WHY_NO_CONTENT.get(state, "it has none"))
    text_hash = None if text is None else hash_text(text)
    return Content(text, text_hash, version, images=images)

"""What a version of an object says."""

from __future__ import annotations

from collections.abc import Sequence

from foredeck.context.wording import WHY_NO_CONTENT
from foredeck.errors import NotFound
from foredeck.lookup.chat import render_chat
from foredeck.model.documents import ChatDocument, Document, session_of
from foredeck.model.memory import MemoryDocument
from foredeck.model.places import AskedPart
from foredeck.names.finding import Found, name_of
from foredeck.notes.named_parts import field_text
from foredeck.store.protocol import Head, Store

WHOLE = AskedPart()


def content_of(store: Store, head: Head, part: AskedPart = WHOLE) -> tuple[str | None, str]:
    """The text of a version, or of a part of it; where it has none, None and why.

    Raises `ForedeckError` for a field that there is not.
    """
    text, why = _content(store, head, part)
    if part.slice is None or part.slice.unit != "char" or text is None:
        return text, why
    return text[part.slice.first - 1 : part.slice.last], why


def numbered(found: Found, history: Sequence[Head], number: int) -> Head:
    """The version of an object with this number in its history, from 1. Raises `NotFound`."""
    if not 1 <= number <= len(history):
        raise NotFound(f"{found.name} has no version {number}; it has 1 to {len(history)}.")
    return history[number - 1]


def number_of(history: Sequence[Head], version: Head) -> int:
    """The number of a version in its object's history, from 1."""
    return next(n for n, known in enumerate(history, start=1) if known.token == version.token)


def version_of(store: Store, found: Found, part: AskedPart) -> Head:
    """The version that is asked for, by default the newest. Raises `NotFound`."""
    if part.hash is None:
        return found.head
    for head in reversed(store.history(found.id)):
        if str(head.fields.get("text_hash") or "").startswith(part.hash):
            return head
    raise NotFound(f"no version of {found.name} has a hash that begins {part.hash}.")


def _content(store: Store, head: Head, part: AskedPart) -> tuple[str | None, str]:
    if part.field is not None:
        document = store.get(head.id, Document, head.token)
        return field_text(document, part.field, name_of(head), store.blob), ""
    if head.type == "chat":
        session = session_of(head.view(ChatDocument).session_ref)
        asked = part.slice if part.slice and part.slice.unit != "char" else None
        text = render_chat(store, session, head.view(ChatDocument).turn_count, asked)
        return (text, "") if text or asked is None else (None, f"it has no {asked}")
    if head.type == "task":
        return _task(store, head), ""
    if head.type == "memory":
        entry = head.view(MemoryDocument)
        return "\n".join(filter(None, (entry.fact, entry.native))), ""
    document = store.get(head.id, Document, head.token)
    if document is not None and document.content is not None:
        return document.content, ""
    state = str(head.fields.get("state") or "")
    if head.fields.get("moved_to"):
        return None, "it was moved"
    if head.fields.get("images"):
        return None, "it is an image"
    return None, WHY_NO_CONTENT.get(state, f"a {head.type} such as this has none")


def _task(store: Store, head: Head) -> str:
    """All of a task, as it was at this version."""
    fields = head.fields
    document = store.get(head.id, Document, head.token)
    said = [
        f"{fields['title']} ({fields['status']})",
        fields.get("summary"),
        document and document.content,
    ]
    return "\n\n".join(text for text in said if text)

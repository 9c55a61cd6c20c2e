"""What an object is called, and what a version of it says."""

from __future__ import annotations

from foredeck.context.tools.versions import WHY_NO_CONTENT
from foredeck.hosts.pi.chat import render_chat
from foredeck.model.documents import Document, session_of
from foredeck.model.sources import path_of
from foredeck.sources.pointing import pointer_label
from foredeck.store.protocol import Head, Store


def name_of(head: Head) -> str:
    """What a user would call an object."""
    fields = head.fields
    if head.type == "toolcall":
        return f"{fields.get('tool')} {fields.get('args_display') or ''}".strip()
    if head.type == "user":
        return str(fields.get("first_line") or head.id)
    return path_of(fields) or pointer_label(fields) or head.id


def content_of(store: Store, head: Head) -> tuple[str | None, str]:
    """The text of a version; where it has none, None and why."""
    if head.type == "chat":
        session = session_of(head.fields["session_ref"])
        return render_chat(store, session, head.fields["turn_count"]), ""
    document = store.get(head.id, Document, head.token)
    if document is not None and document.content is not None:
        return document.content, ""
    state = str(head.fields.get("state") or "")
    if head.fields.get("moved_to"):
        return None, "it was moved"
    return None, WHY_NO_CONTENT.get(state, f"a {head.type} such as this has none")

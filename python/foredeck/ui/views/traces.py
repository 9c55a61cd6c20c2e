"""Where a text stood in the prompts of a session."""

from __future__ import annotations

from typing import Any

from foredeck.accounting.trace import trace
from foredeck.errors import NotFound
from foredeck.store.protocol import Head, Store
from foredeck.timeline.branches import records_of
from foredeck.ui.pages import WebPage
from foredeck.ui.views.session_head import described, found_session


def trace_page(store: Store, name: str, text: str) -> WebPage:
    """The calls of the newest branch, by whether the model could see `text`. Raises `NotFound`."""
    session, head = found_session(store, name)
    records = records_of(store, session)
    if not records:
        raise NotFound(_no_calls(session, head))
    data: dict[str, Any] = {**described(store, session, head, records), "text": text, "spans": []}
    if text:
        data |= trace(store, session, text, records[-1].id).to_json()
    return WebPage("trace.html", "Was it in view?", data, "sessions")


def _no_calls(session: str, head: Head) -> str:
    if not head.fields.get("ingested"):
        return f"session {session} has made no call yet."
    return (
        f"session {session} was read from a history of {head.fields['harness']}: foredeck did not "
        f"see its prompts. `foredeck cost`, `trace` and `show` replay its file in a terminal."
    )

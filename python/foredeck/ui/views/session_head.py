"""The head of every page of a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foredeck.accounting.figure import session_figure
from foredeck.errors import NotFound
from foredeck.histories.standing import progress_in
from foredeck.lookup.sessions import newest_calls, titles
from foredeck.model.calls import CallRecord
from foredeck.model.documents import SessionDocument, session_object_id
from foredeck.names import find_session
from foredeck.store.protocol import Head, Store


def found_session(store: Store, name: str) -> tuple[str, Head]:
    """The id and the document of a session. Raises `NotFound`."""
    session = find_session(store, name)
    head = store.head(session_object_id(session))
    if head is None:
        raise NotFound(f"no session {session!r} is stored.")
    return session, head


def described(
    store: Store, session: str, head: Head, records: Sequence[CallRecord] = ()
) -> dict[str, Any]:
    """What a session is, what it has cost, and which sessions it belongs to. `records`: its calls,
    where they are known already."""
    fields = head.fields
    children = store.query("session", {"parent_session": session})
    started = store.query("session", {"started_by": session})
    progress = progress_in(fields)
    last = records[-1] if records else newest_calls(store, [session])[session]
    begun, ended = (progress.first_ms, progress.last_ms) if progress else (None, None)
    return {
        "session": session,
        "title": title_of(store, session),
        "folder": str(fields.get("cwd") or ""),
        "agent": str(fields.get("harness") or "pi"),
        "ingested": progress is not None,
        "private": bool(fields.get("private")),
        "file": str(fields.get("host_file") or ""),
        "parent": fields.get("parent_session"),
        "started_by": fields.get("started_by"),
        "forks": [child.view(SessionDocument).session_id for child in children],
        "subagents": [_subagent(store, child) for child in started],
        "calls": last.ordinal if last else 0,
        "models": list(dict.fromkeys(r.model.name for r in records if r.model.name)),
        "first_ms": records[0].time_ms if records else begun or None,
        "last_ms": last.time_ms if last else ended or None,
        "figure": session_figure(store, session, last).to_json() if last else None,
        "sets": last.stats._asdict() if last else None,
    }


def title_of(store: Store, session: str) -> str:
    """Its title, or the start of its id where it has none."""
    return titles(store, [session]).get(session) or f"Session {session[:13]}"


def _subagent(store: Store, head: Head) -> dict[str, Any]:
    session = head.view(SessionDocument).session_id
    newest = newest_calls(store, [session])[session]
    return {
        "session": session,
        "title": title_of(store, session),
        "calls": 0 if newest is None else newest.ordinal,
        "figure": session_figure(store, session, newest).to_json(),
    }

"""The list of sessions, and the head of every page of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

from foredeck.accounting.figure import session_figure
from foredeck.errors import NotFound
from foredeck.histories.progress import progress_in
from foredeck.lookup.sessions import newest_calls, project_folder, titles
from foredeck.model.calls import CallRecord
from foredeck.model.documents import SessionDocument, chat_id, session_object_id
from foredeck.names import find_session
from foredeck.store.protocol import Head, Store
from foredeck.ui.pages import WebPage

PER_PAGE = 100
SHOWN_FOLDERS = 12


def sessions_page(
    store: Store, folder: str | None = None, agent: str | None = None, page: int = 1
) -> WebPage:
    """The sessions, the one that was last active first. `folder`: only those of a project, by its
    folder or a worktree; `page` counts from 1."""
    heads = store.query("session")
    chats = {head.id: head.time_ms for head in store.query("chat")}
    active = {head.id: active_ms(head, chats) for head in heads}
    projects = {each: project_folder(each) for each in {_folder(head) for head in heads}}
    wanted = None if folder is None else projects.get(folder, folder)
    chosen = [
        head
        for head in heads
        if wanted in (None, projects[_folder(head)]) and agent in (None, _agent(head))
    ]
    chosen.sort(key=lambda head: active[head.id], reverse=True)
    first = (page - 1) * PER_PAGE
    shown = chosen[first : first + PER_PAGE]
    newest = newest_calls(store, [_id(head) for head in shown])
    named = titles(store, [_id(head) for head in shown])
    rows = [
        {
            "title": named.get(_id(head), ""),
            "folder_name": PurePath(projects[_folder(head)]).name or _folder(head),
            **_row(store, head, active[head.id], newest[_id(head)]),
        }
        for head in shown
    ]
    data = {
        "sessions": rows,
        "total": len(chosen),
        "of": len(heads),
        "page_number": page,
        "pages": max(1, -(-len(chosen) // PER_PAGE)),
        "folders": _facet(heads, lambda head: projects[_folder(head)]),
        "agents": _facet(heads, _agent),
        "folder": wanted,
        "agent": agent,
    }
    return WebPage("sessions.html", "Sessions", data, "sessions")


def _id(head: Head) -> str:
    return head.view(SessionDocument).session_id


def active_ms(head: Head, chats: dict[str, int]) -> int:
    """When a session was active last; `chats`: when each chat has got its newest turn."""
    # A history was read in long after its session had ended.
    read_in = progress_in(head.fields)
    if read_in is not None and read_in.last_ms:
        return read_in.last_ms
    return max(head.time_ms, chats.get(chat_id(_id(head)), 0))


def _folder(head: Head) -> str:
    return str(head.fields.get("cwd") or "")


def _agent(head: Head) -> str:
    return str(head.fields.get("harness") or "pi")


def _row(store: Store, head: Head, active_ms: int, newest: CallRecord | None) -> dict[str, Any]:
    fields, progress = head.fields, progress_in(head.fields)
    read_in = progress if newest is None else None
    return {
        "session": _id(head),
        "folder": _folder(head),
        "agent": _agent(head),
        "active_ms": active_ms,
        "private": bool(fields.get("private")),
        "duration_ms": None if read_in is None else read_in.last_ms - read_in.first_ms,
        "messages": None if read_in is None else read_in.messages,
        "tool_calls": None if read_in is None else read_in.tool_calls,
        "calls": 0 if newest is None else newest.ordinal,
        "objects": 0 if newest is None else newest.stats.objects,
        "model": "" if newest is None else newest.model.name,
        "figure": None if newest is None else session_figure(store, _id(head), newest).to_json(),
        "parent": fields.get("parent_session"),
        "started_by": fields.get("started_by"),
        "ingested": progress is not None,
    }


def _facet(heads: Iterable[Head], value_of: Any) -> list[dict[str, Any]]:
    counts = Counter(value_of(head) for head in heads)
    return [{"value": value, "count": count} for value, count in counts.most_common(SHOWN_FOLDERS)]


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
        "folder": _folder(head),
        "agent": _agent(head),
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

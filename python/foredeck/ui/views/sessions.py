"""The list of sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from foredeck.accounting.figure import session_figure
from foredeck.histories.standing import progress_in
from foredeck.lookup.sessions import newest_calls, project_folder, titles
from foredeck.model.calls import CallRecord
from foredeck.model.documents import SessionDocument, chat_id
from foredeck.store.protocol import Head, Store
from foredeck.ui.pages import WebPage

PER_PAGE = 100
SHOWN_FOLDERS = 12


@dataclass(frozen=True, slots=True)
class Listing:
    """What of the sessions is asked for. `folder`: of a project, or a worktree of it; `page` counts
    from 1."""

    folder: str | None = None
    agent: str | None = None
    page: int = 1


def sessions_page(store: Store, asked: Listing) -> WebPage:
    """The sessions, the one that was last active first."""
    heads = store.query("session")
    chats = {head.id: head.time_ms for head in store.query("chat")}
    active = {head.id: active_ms(head, chats) for head in heads}
    folders = {_folder(head) for head in heads}
    projects = {folder: project_folder(folder) for folder in folders}
    wanted = None if asked.folder is None else projects.get(asked.folder, asked.folder)
    chosen = [
        head
        for head in heads
        if wanted in (None, projects[_folder(head)]) and asked.agent in (None, _agent(head))
    ]
    chosen.sort(key=lambda head: active[head.id], reverse=True)
    first = (asked.page - 1) * PER_PAGE
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
        "page_number": asked.page,
        "pages": max(1, -(-len(chosen) // PER_PAGE)),
        "folders": _facet(heads, lambda head: projects[_folder(head)]),
        "agents": _facet(heads, _agent),
        "folder": wanted,
        "agent": asked.agent,
    }
    return WebPage("sessions.html", "Sessions", data, "sessions")


def _id(head: Head) -> str:
    return head.view(SessionDocument).session_id


def active_ms(head: Head, chats: dict[str, int]) -> int:
    """When a session was active last; `chats`: when each chat has got its newest turn."""
    read_in = progress_in(head.fields)
    if read_in is not None and read_in.last_ms:
        return read_in.last_ms
    return max(head.time_ms, chats.get(chat_id(_id(head)), 0))


def _folder(head: Head) -> str:
    return str(head.fields.get("cwd") or "")


def _agent(head: Head) -> str:
    return str(head.fields.get("harness") or "pi")


def _row(store: Store, head: Head, active_ms: int, newest: CallRecord | None) -> dict[str, Any]:
    fields = head.fields
    read_in = progress_in(fields) if newest is None else None
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
        "ingested": progress_in(fields) is not None,
    }


def _facet(heads: Iterable[Head], value_of: Any) -> list[dict[str, Any]]:
    counts = Counter(value_of(head) for head in heads)
    return [{"value": value, "count": count} for value, count in counts.most_common(SHOWN_FOLDERS)]

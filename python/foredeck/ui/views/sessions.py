"""The list of sessions, and one session: its prompts as a chart and a table; where foredeck saw
none, what was said in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from foredeck.accounting.figure import session_figure
from foredeck.accounting.shapes import blocks_of
from foredeck.accounting.stored import Composition, Kind, compositions
from foredeck.accounting.trace import trace
from foredeck.context.arguments import args_display
from foredeck.errors import NotFound
from foredeck.histories.progress import progress_in
from foredeck.lookup.branches import branches_of
from foredeck.lookup.sessions import newest_calls, project_folder, titles
from foredeck.model.calls import CallRecord, in_order
from foredeck.model.canonical import decode_text
from foredeck.model.documents import SessionDocument, chat_id, session_object_id
from foredeck.model.messages import unpack
from foredeck.names import find_session
from foredeck.store.protocol import Head, Store
from foredeck.timeline.branches import records_of
from foredeck.ui.charts import bars, folded_handles, outline, tokens_of, why
from foredeck.ui.pages import WebPage, link
from foredeck.ui.views.turns import TurnsListing, turns_of

SESSIONS_PER_PAGE = 100
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
    first = (page - 1) * SESSIONS_PER_PAGE
    shown = chosen[first : first + SESSIONS_PER_PAGE]
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
        "pages": max(1, -(-len(chosen) // SESSIONS_PER_PAGE)),
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
        "reasoning": last.lost_so_far.text if last else "",
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


# One session


CALLS_PER_PAGE = 200
_CAME_IN_CHARS = 90


def session_page(store: Store, name: str, first: int | None) -> WebPage:
    """The session as a timeline of prompts, one page of calls from `first` on (default: the last).

    Raises `NotFound`.
    """
    session, head = found_session(store, name)
    heads = store.query("call", {"session": session})
    if not heads:
        return turns_page(store, name, TurnsListing(first))
    records = in_order(head.fields for head in heads)
    start = _start(len(records), first)
    shown = records[start - 1 : start - 1 + CALLS_PER_PAGE]
    made = list(compositions(store, heads, {record.ordinal for record in shown}))
    data = {
        **described(store, session, head, records),
        "first": start,
        "last": start + len(shown) - 1,
        "per_page": CALLS_PER_PAGE,
        "calls_shown": _call_rows(store, made),
        "kinds": [str(kind) for kind in Kind],
        "branches": _branch_rows(store, session, heads),
        "chart": bars(made, lambda call: link("sessions", session, "calls", call)),
        "outline": outline(
            records, start, CALLS_PER_PAGE, lambda call: link("sessions", session, first=call)
        ),
    }
    return WebPage("session.html", str(data["title"]), data, "sessions")


def _start(calls: int, first: int | None) -> int:
    if first is None:
        first = ((calls - 1) // CALLS_PER_PAGE) * CALLS_PER_PAGE + 1 if calls else 1
    return max(1, min(first, max(1, calls)))


def turns_page(store: Store, name: str, asked: TurnsListing) -> WebPage:
    """The turns of a session, a page of answers at a time. Raises `NotFound`."""
    session, head = found_session(store, name)
    data = {**described(store, session, head), **turns_of(store, session, asked)}
    return WebPage("turns.html", str(data["title"]), data, "sessions")


def trace_page(store: Store, name: str, text: str) -> WebPage:
    """The calls of the newest branch, by whether the model could see `text`. Raises `NotFound`."""
    session, head = found_session(store, name)
    records = records_of(store, session)
    if not records:
        raise NotFound(_no_calls(session, head))
    data = {**described(store, session, head, records), "text": text, "spans": [], "archived": 0}
    if text:
        data |= trace(store, session, text, records[-1].id).to_json()
    return WebPage("trace.html", "Was it in view?", data, "sessions")


def _call_rows(store: Store, made: Sequence[Composition]) -> list[dict[str, Any]]:
    """What the table says of prompts."""
    # In one question to the store.
    blobs = store.blobs(address for one in made for address in one.record.addresses)
    return [{**_call_row(one), "came_in": _came_in(store, one.record, blobs)} for one in made]


def _call_row(one: Composition) -> dict[str, Any]:
    record, stats, cache = one.record, one.record.stats, one.record.cache
    decision = record.decision
    return {
        "call": record.ordinal,
        "time_ms": record.time_ms,
        "model": record.model.name,
        "kind": decision.kind,
        "reason": decision.reason,
        "why": why(decision),
        "reasoning": record.lost.sum.text,
        "weighed": decision.weighed,
        "tokens": {str(kind): tokens_of(record, count) for kind, count in one.chars.items()},
        "tokens_sent": tokens_of(record, one.total),
        "tokens_plain": tokens_of(record, stats.chars_host),
        "chars": {str(kind): count for kind, count in one.chars.items()},
        "chars_sent": stats.chars_sent,
        "chars_host": stats.chars_host,
        "folded": stats.folded,
        "folded_now": folded_handles(record),
        "read": cache.read,
        "written": cache.written,
        "fresh": cache.fresh,
    }


def _came_in(store: Store, record: CallRecord, blobs: dict[str, bytes]) -> dict[str, Any]:
    """What is new in a prompt: what its user asked, else the tools whose results came back."""
    messages = [json.loads(decode_text(blobs[a])) for a in record.addresses if a in blobs]
    asked = [message for message in messages if message.get("role") == "user"]
    ran = [call for message in messages for call in _calls(message)]
    failed = sum(1 for m in messages if m.get("role") == "toolResult" and m.get("isError"))
    said = "" if not asked else _said(unpack(asked[-1].get("content"), store.blob))
    tools = [_shortened(f"{tool} {shown}".strip()) for tool, shown in ran]
    return {"asked": _shortened(said), "tools": tools, "failed": failed}


def _calls(message: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for block in blocks_of(message) if message.get("role") == "assistant" else ():
        if block.get("type") == "toolCall":
            arguments = block.get("arguments")
            shown = args_display(arguments, "") if isinstance(arguments, dict) else ""
            yield str(block.get("name")), shown


def _said(content: Any) -> str:
    if isinstance(content, list):
        content = " ".join(str(b.get("text") or "") for b in content if isinstance(b, dict))
    return " ".join(str(content or "").split())


def _shortened(text: str) -> str:
    return text if len(text) <= _CAME_IN_CHARS else f"{text[:_CAME_IN_CHARS]}…"


def _branch_rows(store: Store, session: str, heads: Sequence[Head]) -> list[dict[str, Any]]:
    """The branches of a session that has made calls; none where it never left the first."""
    found = branches_of(store, session, heads)
    if len(found.all) < 2:
        return []
    return [{**asdict(b), "current": b is found.current} for b in found.all]


def _no_calls(session: str, head: Head) -> str:
    if not head.fields.get("ingested"):
        return f"session {session} has made no call yet."
    agent = head.view(SessionDocument).harness
    return (
        f"session {session} was read from a history of {agent}: foredeck did not "
        f"see its prompts. `foredeck cost`, `trace` and `show` replay its file in a terminal."
    )

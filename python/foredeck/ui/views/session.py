"""One session: its prompts in the order in which they went out, and what is known about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from foredeck.accounting.composition import Composition, Kind, compositions
from foredeck.accounting.figure import session_figure
from foredeck.histories.standing import progress_in
from foredeck.lookup.branches import branches_of
from foredeck.lookup.errors import NotFound
from foredeck.lookup.finding import find_session
from foredeck.lookup.sessions import newest_calls
from foredeck.model.calls import CallRecord, in_order
from foredeck.model.documents import session_object_id
from foredeck.store.protocol import Head, Store
from foredeck.ui.charts import bars, outline
from foredeck.ui.pages import WebPage, link

PER_PAGE = 200


def session_page(store: Store, name: str, first: int | None) -> WebPage:
    """The session as a timeline of prompts, `PER_PAGE` calls from `first` on (default: the last).

    Raises `NotFound`.
    """
    session, head = found_session(store, name)
    heads = store.query("call", {"session": session})
    records = in_order(head.fields for head in heads)
    start = _start(len(records), first)
    shown = records[start - 1 : start - 1 + PER_PAGE]
    wanted = {record.ordinal for record in shown}
    made = list(compositions(store, heads, wanted)) if shown else []
    data = {
        **described(store, session, head, records),
        "first": start,
        "last": start + len(shown) - 1,
        "per_page": PER_PAGE,
        "calls_shown": [call_row(one) for one in made],
        "kinds": [str(kind) for kind in Kind],
        "branches": branch_rows(store, session, heads) if records else [],
        "chart": bars(made, lambda call: link("sessions", session, "calls", call)),
        "outline": outline(
            records, start, PER_PAGE, lambda call: link("sessions", session, first=call)
        ),
    }
    return WebPage("session.html", f"Session {session[:13]}", data, "sessions")


def found_session(store: Store, name: str) -> tuple[str, Head]:
    """The id and the document of a session. Raises `NotFound`."""
    session = find_session(store, name)
    head = store.head(session_object_id(session))
    if head is None:
        raise NotFound(f"no session {session!r} is stored.")
    return session, head


def described(
    store: Store, session: str, head: Head, records: Sequence[CallRecord]
) -> dict[str, Any]:
    """What stands above the timeline."""
    fields = head.fields
    children = store.query("session", {"parent_session": session})
    started = store.query("session", {"started_by": session})
    last = records[-1] if records else None
    return {
        "session": session,
        "folder": str(fields.get("cwd") or ""),
        "agent": str(fields.get("harness") or "pi"),
        "ingested": progress_in(fields) is not None,
        "parent": fields.get("parent_session"),
        "started_by": fields.get("started_by"),
        "forks": [str(child.fields["session_id"]) for child in children],
        "subagents": [_subagent(store, child) for child in started],
        "calls": len(records),
        "models": list(dict.fromkeys(r.model.name for r in records if r.model.name)),
        "first_ms": records[0].time_ms if records else None,
        "last_ms": last.time_ms if last else None,
        "figure": session_figure(store, session, last).to_json() if last else None,
        "sets": last.stats._asdict() if last else None,
    }


def _subagent(store: Store, head: Head) -> dict[str, Any]:
    session = str(head.fields["session_id"])
    newest = newest_calls(store, [session])[session]
    return {
        "session": session,
        "calls": 0 if newest is None else newest.ordinal,
        "figure": session_figure(store, session, newest).to_json(),
    }


def _start(calls: int, first: int | None) -> int:
    if first is None:
        first = ((calls - 1) // PER_PAGE) * PER_PAGE + 1 if calls else 1
    return max(1, min(first, max(1, calls)))


def call_row(one: Composition) -> dict[str, Any]:
    """What the table says of a prompt."""
    record, stats, cache = one.record, one.record.stats, one.record.cache
    decision = record.decision
    return {
        "call": record.ordinal,
        "time_ms": record.time_ms,
        "model": record.model.name,
        "kind": decision.kind,
        "reason": decision.reason,
        "weighed": decision.weighed,
        "chars": {str(kind): count for kind, count in one.chars.items()},
        "chars_sent": stats.chars_sent,
        "chars_host": stats.chars_host,
        "folded": stats.folded,
        "read": cache.read,
        "written": cache.written,
        "fresh": cache.fresh,
    }


def branch_rows(store: Store, session: str, heads: Sequence[Head]) -> list[dict[str, Any]]:
    """The branches of a session that has made calls; none where it never left the first."""
    found = branches_of(store, session, heads)
    if len(found.all) < 2:
        return []
    return [{**asdict(b), "current": b is found.current} for b in found.all]

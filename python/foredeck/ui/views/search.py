"""Search over everything, and jumping to what a name means."""

from __future__ import annotations

from typing import Any

from foredeck.errors import ForedeckError
from foredeck.lookup.finding import find_object, find_session
from foredeck.search.index import Filters, SearchIndex
from foredeck.search.searching import SearchHit, search
from foredeck.search.types import SEARCHED_TYPES
from foredeck.store.privacy import private_sessions
from foredeck.store.protocol import Store
from foredeck.ui.pages import WebPage, link

LIMIT = 30


def search_page(
    store: Store, index: SearchIndex, query: str, type: str | None, session: str | None, note: str
) -> WebPage:
    """What is found for a query, the best first, and the thing that it names, if it names one."""
    kind = type if type in SEARCHED_TYPES else None
    only = None if not session else (find_session(store, session),)
    data: dict[str, Any] = {
        "query": query,
        "type": kind,
        "types": list(SEARCHED_TYPES),
        "session": None if only is None else only[0],
        "jump": _jump(store, query) if query else None,
        "total": 0,
        "is_part": False,
        "hits": [],
        "behind": note,
    }
    if query:
        found = search(
            store,
            index,
            query,
            Filters(only, kind, without=private_sessions(store, only or ())),
            limit=LIMIT,
        )
        data |= {
            "total": found.total,
            "is_part": found.is_part,
            "hits": [_hit(hit) for hit in found.hits],
        }
    return WebPage("search.html", f"Search: {query}" if query else "Search", data, "search")


def _jump(store: Store, text: str) -> dict[str, str] | None:
    """The session or object that a text names; None where it names none, or several."""
    if len(text) < 4:
        return None
    try:
        session = find_session(store, text)
        return {"what": f"session {session}", "address": link("sessions", session)}
    except ForedeckError:
        pass
    try:
        found = find_object(store, text)
        return {"what": found.name, "address": link("objects", found.id)}
    except ForedeckError:
        return None


def _hit(hit: SearchHit) -> dict[str, Any]:
    entry = hit.entry
    is_task = entry.type == "task"
    return {
        "session": hit.session,
        "object": hit.object,
        "message": entry.message,
        "type": entry.type,
        "role": entry.role or None,
        "status": entry.status,
        "time_ms": entry.time_ms,
        "path": entry.path,
        "snippet": hit.snippet,
        "words": list(hit.words),
        "address": link("tasks", hit.object) if is_task else link("objects", hit.object),
    }

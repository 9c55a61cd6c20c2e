"""Search over everything, and jumping to what a name means."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from foredeck.config import Config
from foredeck.context.tools.found import kind_of_hit
from foredeck.errors import ForedeckError
from foredeck.lookup.reader import shown_memories
from foredeck.names import find_object, find_session
from foredeck.search import SEARCHED_TYPES
from foredeck.search.index import Filters, SearchIndex
from foredeck.search.searching import SearchHit, search
from foredeck.store.protocol import Store
from foredeck.store.sessions import private_sessions
from foredeck.ui.pages import WebPage, link

LIMIT = 30
_PAGES = {"task": "tasks", "memory": "memory"}
_FOUND_CHARS = 80
"""Of the text that a browser looks for on a page."""


def search_page(
    store: Store,
    index: SearchIndex,
    config: Config,
    query: str,
    type: str | None,
    session: str | None,
    note: str,
) -> WebPage:
    """What is found for a query, the session first that answers best, and the thing that it names,
    if it names one."""
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
        "weak": 0,
        "groups": [],
        "behind": note,
    }
    if query:
        memories = shown_memories(store, config, only)
        found = search(
            store,
            index,
            query,
            Filters(only, kind, without=private_sessions(store, only or ()), memories=memories),
            limit=LIMIT,
            sessions_first=True,
        )
        data |= {
            "total": len(found.hits) + max(0, found.more),
            "is_part": found.is_part,
            "weak": found.weak,
            "groups": [
                {
                    "session": session,
                    "title": "" if session is None else found.titles[session],
                    "hits": [_hit(hit) for hit in hits],
                }
                for session, hits in found.groups()
            ],
        }
    return WebPage("search.html", f"Search: {query}" if query else "Search", data, "search")


def _jump(store: Store, text: str) -> dict[str, str] | None:
    """The session or object that a text names; None where it names none, or several."""
    # The beginning of an id: shorter ones fit too many.
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
    return {
        "session": hit.session,
        "object": hit.object,
        "place": hit.place.strip(),
        "message": entry.message,
        "type": entry.type,
        "kind": kind_of_hit(entry),
        "role": entry.role or None,
        "status": entry.status,
        "time_ms": entry.time_ms,
        "path": entry.path,
        "also": hit.also,
        "snippet": hit.passage.text,
        "pieces": list(hit.passage.pieces()),
        "words": list(hit.rank.words),
        "address": _address(hit),
    }


def _address(hit: SearchHit) -> str:
    """The page of a hit, at its place. The browser goes on to the text that was found."""
    if hit.entry.type in _PAGES:
        return link(_PAGES[hit.entry.type], hit.object)
    passage = hit.passage
    words = " ".join(dict.fromkeys(passage.text[start:end] for start, end in passage.marks))
    if hit.entry.type in ("message", "toolcall") and hit.session and (turn := _turn_of(hit)):
        place = link("sessions", hit.session, "turns", message=turn, words=words)
        return f"{place}#t{turn}"
    # A text fragment (`#:~:text=`) must be in one line of the page.
    lines = hit.passage.text.strip("…").split("\n")
    marked = [line for line in lines if any(word in line.lower() for word in _first_words(hit))]
    found = (marked or lines)[0].strip()[:_FOUND_CHARS]
    return link("objects", hit.object, part=hit.place.strip()) + f"#:~:text={quote(found, safe='')}"


def _turn_of(hit: SearchHit) -> int | None:
    """The number of the answer that a hit belongs to, where it is of the session itself."""
    named, _, number = str(hit.entry.message or "").rpartition(":")
    return int(number) if named == f"turn:{hit.session}" and number.isdecimal() else None


def _first_words(hit: SearchHit) -> list[str]:
    start, end = hit.passage.marks[0] if hit.passage.marks else (0, 0)
    return [hit.passage.text[start:end].lower()] if end else []

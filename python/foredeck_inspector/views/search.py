"""Search over everything, jumps by name, and lists of objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from foredeck.context.tools.found import counted_hits, kind_of_hit
from foredeck.errors import ForedeckError
from foredeck.lookup.objects import find_objects, listed
from foredeck.lookup.reader import shown_memories
from foredeck.model.figures import counted
from foredeck.model.kinds import OBJECT_TYPES
from foredeck.names import find_object, find_session
from foredeck.search import SEARCHED_TYPES
from foredeck.search.index import Filters, SearchIndex
from foredeck.search.searching import SearchHit, search
from foredeck.store.sessions import private_sessions
from foredeck.store.store import Store
from foredeck_inspector.pages import Asked, WebPage, link
from foredeck_inspector.tables import Column, Table
from foredeck_inspector.views.sessions import turn_address

LIMIT = 30
MOST_IN_TREE = 2_000
_FOUND_CHARS = 80
"""Of the text that a browser looks for."""
_OBJECTS = (
    Column("name", "Object", link="address"),
    Column("status", "State"),
    Column("time_ms", "Newest version", "time"),
    Column("chars", "Characters", "count"),
)


def search_page(asked: Asked) -> WebPage:
    """What a query finds, and the thing that it names; else what is stored."""
    with asked.reader.search(asked.store) as (index, behind):
        return _search(asked, index, behind)


def _search(asked: Asked, index: SearchIndex, behind: str) -> WebPage:
    store, values = asked.store, asked.values
    query, type = values.get("q", "").strip(), values.get("type", "")
    session = values.get("session", "")
    only = None if not session else (find_session(store, session),)
    data: dict[str, Any] = {
        "query": query,
        "type": type,
        "types": list(SEARCHED_TYPES),
        "stored_types": list(OBJECT_TYPES),
        "session": None if only is None else only[0],
        "jump": _jump(store, query) if query else None,
        "behind": behind,
    }
    if not query:
        return WebPage("search.html", "Search", {**data, **_stored(store, values)}, "search")
    kind = type if type in SEARCHED_TYPES else None
    memories = shown_memories(store, asked.reader.config, only)
    found = search(
        store,
        index,
        query,
        Filters(only, kind, without=private_sessions(store, only or ()), memories=memories),
        limit=LIMIT,
        sessions_first=True,
    )
    data |= {
        "counted": counted_hits(found),
        "total": found.total,
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
    return WebPage("search.html", f"Search: {query}", data, "search")


def _stored(store: Store, asked: Mapping[str, str]) -> dict[str, Any]:
    type, contains = asked.get("type", ""), asked.get("contains", "")
    chosen = type if type in OBJECT_TYPES else "file"
    heads = find_objects(store, [chosen], contains=contains, status=asked.get("status") or None)
    rows = [{**listed(head), "address": link("objects", head.id)} for head in heads]
    shows_tree = chosen == "file" and asked.get("view") != "list" and "objects.sort" not in asked
    caption = f"{counted(len(rows), chosen)}, the newest first"
    return {
        "type": chosen,
        "contains": contains,
        "status": asked.get("status", ""),
        "tree": _tree(rows[:MOST_IN_TREE]) if shows_tree else None,
        "objects": Table("objects", caption, _OBJECTS, rows).arranged(asked),
    }


def _tree(listed: list[dict[str, Any]]) -> dict[str, Any]:
    """Files by folder; a folder with only one other is joined."""
    root: dict[str, Any] = {"folders": {}, "files": [], "count": 0}
    for each in listed:
        *folders, name = str(each["name"]).split("/")
        at = root
        at["count"] += 1
        for folder in folders:
            at = at["folders"].setdefault(folder, {"folders": {}, "files": [], "count": 0})
            at["count"] += 1
        at["files"].append({**each, "short": name})
    return _joined(root)


def _joined(node: dict[str, Any]) -> dict[str, Any]:
    folders: dict[str, Any] = {}
    for name, child in sorted(node["folders"].items()):
        below, path = child, name
        while not below["files"] and len(below["folders"]) == 1:
            ((inner, below),) = below["folders"].items()
            path = f"{path}/{inner}"
        folders[path] = _joined(below)
    return {**node, "folders": folders, "files": sorted(node["files"], key=lambda f: f["short"])}


def _jump(store: Store, text: str) -> dict[str, str] | None:
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
    passage = hit.passage
    words = " ".join(dict.fromkeys(passage.text[start:end] for start, end in passage.marks))
    if hit.entry.type in ("message", "toolcall") and hit.session and (turn := _turn_of(hit)):
        return turn_address(hit.session, turn, words=words)
    # A text fragment (`#:~:text=`) must be in one line of the page.
    lines = hit.passage.text.strip("…").split("\n")
    marked = [line for line in lines if any(word in line.lower() for word in _first_words(hit))]
    found = (marked or lines)[0].strip()[:_FOUND_CHARS]
    return link("objects", hit.object, part=hit.place.strip()) + f"#:~:text={quote(found, safe='')}"


def _turn_of(hit: SearchHit) -> int | None:
    named, _, number = str(hit.entry.message or "").rpartition(":")
    return int(number) if named == f"turn:{hit.session}" and number.isdecimal() else None


def _first_words(hit: SearchHit) -> list[str]:
    start, end = hit.passage.marks[0] if hit.passage.marks else (0, 0)
    return [hit.passage.text[start:end].lower()] if end else []

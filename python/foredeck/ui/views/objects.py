"""Objects: lists by type, one object with its versions, what changed between two of them, notes,
and the graph around one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from foredeck.config import Config
from foredeck.errors import NotFound
from foredeck.lookup.reader import note_rule
from foredeck.lookup.tracking import Tracking
from foredeck.lookup.versions import (
    number_of,
    numbered,
    version_of,
    version_text,
    versions_until_now,
)
from foredeck.model.kinds import OBJECT_TYPES
from foredeck.model.records import MemberDocument
from foredeck.names import Found, find_object, find_part, name_of
from foredeck.notes.graph import Edge, Graph
from foredeck.sources.snapshots import version_ms
from foredeck.store.protocol import Head, Store
from foredeck.timeline.blame import blame
from foredeck.timeline.differences import hunks_of
from foredeck.ui.charts import drawing
from foredeck.ui.pages import WebPage

PER_PAGE = 200
SESSIONS_SHOWN = 20
MOST_IN_TREE = 2_000
NOTES_SHOWN = 500
NEIGHBOURS = 60


def objects_page(
    store: Store, type: str, contains: str, page: int, view: str | None = "list"
) -> WebPage:
    """Objects of one type, the newest first, or files as a tree of folders; `contains`: in their
    names."""
    if type not in OBJECT_TYPES:
        raise NotFound(f"there is no type {type!r}: {', '.join(OBJECT_TYPES)}.")
    heads = store.query(type)
    wanted = contains.casefold()
    if wanted:
        heads = [head for head in heads if wanted in name_of(head).casefold()]
    heads.sort(key=lambda head: head.time_ms, reverse=True)
    first = (page - 1) * PER_PAGE
    shows_tree = type == "file" and view != "list" and page == 1
    data = {
        "type": type,
        "view": view,
        "tree": _tree([_listed(head) for head in heads[:MOST_IN_TREE]]) if shows_tree else None,
        "types": list(OBJECT_TYPES),
        "contains": contains,
        "total": len(heads),
        "page_number": page,
        "pages": max(1, -(-len(heads) // PER_PAGE)),
        "objects": [_listed(head) for head in heads[first : first + PER_PAGE]],
    }
    return WebPage("objects.html", "Objects", data, "objects")


def object_page(
    store: Store,
    graph: Graph,
    name: str,
    version: int | None,
    part: str = "",
    tracking: Tracking | None = None,
) -> WebPage:
    """One object at a version (default: the newest), or a part of it, as a search names that
    (`message 93`); of a file whether `tracking` can look at it now. Raises `NotFound`."""
    behind = part if part.startswith("::") or not part else f" {part}"
    found, asked = find_part(store, name + behind)
    history = store.history(found.id)
    number = version or number_of(history, version_of(store, found, asked))
    shown = numbered(found, history, number)
    text, why = version_text(store, shown, asked)
    data = {
        **_identity(store, found),
        "version": number,
        "part": part,
        "tracking": None if tracking is None else tracking.state(history[-1]),
        "versions": [_version(n, head) for n, head in enumerate(history, start=1)],
        "content": text,
        "no_content": why,
        "fields": _fields(shown),
        "links": [_edge(graph, edge, edge.target) for edge in graph.links(found.id)],
        "backlinks": [_edge(graph, edge, edge.source) for edge in graph.backlinks(found.id)],
    }
    return WebPage("object.html", name_of(found.head), data, "objects")


def object_diff_page(store: Store, name: str, old: int | None, new: int | None) -> WebPage:
    """What changed between two versions (default: the newest and the one before it)."""
    found = find_object(store, name)
    history = store.history(found.id)
    after = new or len(history)
    before = old or max(1, after - 1)
    shown = [numbered(found, history, number) for number in (before, after)]
    texts = [version_text(store, head)[0] or "" for head in shown]
    data = {
        **_identity(store, found),
        "old": before,
        "new": after,
        "versions": [_version(n, head) for n, head in enumerate(history, start=1)],
        "lines": hunks_of(*texts),
    }
    return WebPage("object_diff.html", f"{name_of(found.head)}, changes", data, "objects")


def blame_page(store: Store, name: str) -> WebPage:
    """Which call wrote each line of a file. Raises `NotFound`."""
    found = find_object(store, name)
    if found.head.type != "file":
        raise NotFound(f"{found.name} is not a file: only the lines of files are traced to calls.")
    lines = blame(store, versions_until_now(store, found))
    data = {**_identity(store, found), "lines": list(_blamed(lines))}
    return WebPage("blame.html", f"{name_of(found.head)}, by line", data, "objects")


def notes_page(graph: Graph, config: Config, tag: str | None, note: str) -> WebPage:
    """All notes, by title; `note` says what the index lacks."""
    rule = note_rule(config)
    listed = [
        (node, rule.is_note(node.path or "", kind)) for node, kind in graph.markdown(tag or None)
    ]
    orphans = graph.orphans()
    data = {
        "tag": tag,
        "tags": [{"tag": name, "count": count} for name, count in graph.tags()],
        "total": len(listed),
        "notes": [
            {
                **node.as_json(),
                "note": is_note,
                "tags": graph.tags_of(node.id),
                "orphan": node.id in orphans,
            }
            for node, is_note in listed[:NOTES_SHOWN]
        ],
        "broken": [_broken(each) for each in list(graph.unresolved())[:NOTES_SHOWN]],
        "behind": note,
    }
    return WebPage("notes.html", "Notes", data, "notes")


def graph_page(store: Store, graph: Graph, name: str, depth: int, note: str) -> WebPage:
    """What is at most `depth` references away from an object. Raises `NotFound`."""
    found = find_object(store, name)
    around = graph.neighbours(found.id, depth, limit=NEIGHBOURS)
    data = {
        "object": found.id,
        "name": found.name,
        "depth": depth,
        "complete": around.complete,
        "nodes": [{**node.as_json(), "distance": distance} for node, distance in around.nodes],
        "edges": [edge.as_json() for edge in around.edges],
        "titles": {node.id: node.title for node, _ in around.nodes},
        "chart": drawing(around.nodes, [(e.source, e.target) for e in around.edges]),
        "behind": note,
    }
    return WebPage("graph.html", f"Around {found.name}", data, "notes")


def _identity(store: Store, found: Found) -> dict[str, Any]:
    members = store.query("member", {"object": found.id})
    met = [(m.view(MemberDocument).session, m.view(MemberDocument).ordinal) for m in members]
    return {
        "object": found.id,
        "name": name_of(found.head),
        "type": found.head.type,
        "sessions": [{"session": s, "handle": f"@{n}"} for s, n in met[:SESSIONS_SHOWN]],
        "sessions_total": len(met),
    }


def _listed(head: Head) -> dict[str, Any]:
    return {
        "object": head.id,
        "name": name_of(head),
        "time_ms": version_ms(head),
        "status": head.fields.get("status") or head.fields.get("state"),
        "chars": head.fields.get("char_count"),
    }


def _tree(listed: list[dict[str, Any]]) -> dict[str, Any]:
    """Files by folder; a folder that holds only one other is one with it."""
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


def _version(number: int, head: Head) -> dict[str, Any]:
    provenance = head.fields.get("provenance") or {}
    return {
        "version": number,
        "time_ms": version_ms(head),
        "origin": provenance.get("origin"),
        "by": provenance.get("generator"),
        "chars": head.fields.get("char_count"),
        "state": head.fields.get("state") or head.fields.get("status"),
        "hash": head.fields.get("text_hash"),
    }


def _fields(head: Head) -> dict[str, str]:
    return {
        name: str(value)
        for name, value in sorted(head.fields.items())
        if value not in (None, "", [], {}) and not isinstance(value, dict | list)
    }


def _edge(graph: Graph, edge: Edge, other: str) -> dict[str, Any]:
    node = graph.node(other)
    return {
        "object": other,
        "title": other if node is None else node.title,
        "relation": edge.reference.relation,
        "static": edge.reference.static,
        "field": edge.reference.field,
    }


def _blamed(lines: list[Any]) -> Iterator[dict[str, Any]]:
    before = None
    for line in lines:
        author = line.author
        yield {
            "number": line.number,
            "text": line.text,
            "by": author.by,
            "name": author.name,
            "session": author.session,
            "call": author.call,
            "tool": author.tool,
            "model": author.model,
            "time_ms": author.time_ms,
            "first_of_run": author != before,
        }
        before = author


def _broken(each: Any) -> dict[str, Any]:
    return {
        "object": each.source.id,
        "title": each.source.title,
        "target": each.reference.whole,
        "candidates": [node.as_json() for node in each.candidates],
    }

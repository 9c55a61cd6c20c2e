"""One object: content with authors, versions and references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from foredeck.errors import NotFound
from foredeck.lookup.objects import (
    number_of,
    numbered,
    tracking,
    version_of,
    version_text,
    versions_until_now,
)
from foredeck.model.quoting import printable
from foredeck.model.records import MemberDocument
from foredeck.names import Found, find_part, name_of
from foredeck.notes.graph import Edge, Graph
from foredeck.sources.snapshots import version_ms
from foredeck.store.protocol import Head
from foredeck.store.store import Store
from foredeck.timeline.blame import blame
from foredeck.timeline.differences import hunks_of
from foredeck_inspector.pages import Asked, WebPage, link
from foredeck_inspector.tables import Column, Row, Table
from foredeck_inspector.views.records import entry_details, task_details

SESSIONS_SHOWN = 20
_OF_AUTHOR = ("by", "name", "session", "call", "tool", "model", "time_ms")
_REFERENCES = (
    Column("title", "Object", link="address"),
    Column("way", "Refers"),
    Column("relation", "Relation"),
    Column("follows", "Follows"),
)


def object_page(asked: Asked) -> WebPage:
    """An object at a version, or a part; `base` is compared, `lines` traced. Raises `NotFound`."""
    with asked.reader.graph(asked.store) as (graph, behind):
        return _object(asked, graph, behind)


def _object(asked: Asked, graph: Graph, behind: str) -> WebPage:
    store, config, name = asked.store, asked.reader.config, asked.part("object")
    version, base = (asked.number(each) for each in ("version", "base"))
    part, by_line = asked.values.get("part", ""), bool(asked.values.get("lines"))
    found, place = find_part(store, name + (part if part.startswith("::") else f" {part}".rstrip()))
    head, history = found.head, store.history(found.id)
    number = version or number_of(history, version_of(store, found, place))
    shown = numbered(found, history, number)
    text, why = version_text(store, shown, place)
    lines = None
    if base is not None:
        older, _ = version_text(store, numbered(found, history, base))
        lines = hunks_of(older or "", text or "")
    if by_line and head.type != "file":
        raise NotFound(f"{found.name} is not a file: only the lines of files are traced to calls.")
    rows = [_edge(graph, edge, edge.target, "to it") for edge in graph.links(found.id)]
    rows += [_edge(graph, edge, edge.source, "from it") for edge in graph.backlinks(found.id)]
    members = store.query("member", {"object": found.id})
    met = [(m.view(MemberDocument).session, m.view(MemberDocument).ordinal) for m in members]
    references = Table("references", "References", _REFERENCES, rows, 50)
    data = {
        "object": found.id,
        "name": name_of(head),
        "type": head.type,
        "version": number,
        "base": base,
        "part": part,
        "state": tracking(config, store).state(history[-1]),
        "sessions": [{"session": s, "handle": f"@{n}"} for s, n in met[:SESSIONS_SHOWN]],
        "sessions_total": len(met),
        "versions": [_version(n, each) for n, each in enumerate(history, start=1)],
        "content": text,
        "no_content": why,
        "difference": lines,
        "blame": list(_blamed(store, found)) if by_line else None,
        "fields": _fields(shown),
        "references": references.arranged(asked.values),
        "behind": behind,
        "entry": entry_details(store, config, found.id) if head.type == "memory" else None,
        "task": task_details(store, found.id) if head.type == "task" else None,
    }
    section = {"memory": "memory", "task": "tasks"}.get(head.type, "search")
    return WebPage("object.html", name_of(head), data, section)


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
        name: printable(str(value)[:400])
        for name, value in sorted(head.fields.items())
        if value not in (None, "", [], {}) and not isinstance(value, dict | list)
    }


def _edge(graph: Graph, edge: Edge, other: str, way: str) -> Row:
    node = graph.node(other)
    return {
        "object": other,
        "title": other if node is None else node.title,
        "address": link("objects", other),
        "way": way,
        "relation": edge.reference.relation,
        "follows": "one version" if edge.reference.static else "the latest",
        "field": edge.reference.field,
    }


def _blamed(store: Store, found: Found) -> Iterator[dict[str, Any]]:
    before = None
    for line in blame(store, versions_until_now(store, found)):
        author = line.author
        yield {
            "number": line.number,
            "text": line.text,
            **{name: getattr(author, name) for name in _OF_AUTHOR},
            "first_of_run": author != before,
        }
        before = author

"""Notes and their references: the list, and the graph around one object."""

from __future__ import annotations

from typing import Any

from foredeck.config import Config
from foredeck.lookup.reader import note_rule
from foredeck.names import find_object
from foredeck.notes.graph import Graph, Neighbourhood
from foredeck.store.protocol import Store
from foredeck.ui.charts import GraphNode, drawing
from foredeck.ui.pages import WebPage

SHOWN = 500
NEIGHBOURS = 60


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
            for node, is_note in listed[:SHOWN]
        ],
        "broken": [_broken(each) for each in list(graph.unresolved())[:SHOWN]],
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
        "chart": drawing(_nodes(around), [(e.source, e.target) for e in around.edges]),
        "behind": note,
    }
    return WebPage("graph.html", f"Around {found.name}", data, "notes")


def _nodes(around: Neighbourhood) -> list[GraphNode]:
    return [GraphNode(node.id, node.title, distance) for node, distance in around.nodes]


def _broken(each: Any) -> dict[str, Any]:
    return {
        "object": each.source.id,
        "title": each.source.title,
        "target": each.reference.whole,
        "candidates": [node.as_json() for node in each.candidates],
    }

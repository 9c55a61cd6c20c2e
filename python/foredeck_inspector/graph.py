"""What refers to what, as SVG: a column for each step."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from statistics import mean

from markupsafe import Markup

from foredeck.model.quoting import printable
from foredeck.notes.graph import Node
from foredeck_inspector.pages import link

_COLUMN, _ROW, _TOP = 330, 24, 20
_LABEL_CHARS = 38


Nodes = Sequence[tuple[Node, int]]


def drawing(nodes: Nodes, edges: Sequence[tuple[str, str]]) -> Markup:
    """The graph as SVG; empty for less than two nodes."""
    if len(nodes) < 2:
        return Markup()
    places = _places(nodes, edges)
    lines = "".join(
        _line(places[source], places[target])
        for source, target in edges
        if source in places and target in places and source != target
    )
    marks = "".join(_mark(node, distance, places[node.id]) for node, distance in nodes)
    width = _COLUMN * (1 + max(distance for _, distance in nodes))
    height = _TOP + max(y for _, y in places.values())
    return Markup(  # every text in it was escaped
        f'<svg class="graph" role="group" aria-label="Graph of references" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}">{lines}{marks}</svg>'
    )


def _places(nodes: Nodes, edges: Sequence[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    columns: dict[int, list[Node]] = {}
    for node, distance in nodes:
        columns.setdefault(distance, []).append(node)
    bound: dict[str, set[str]] = {}
    for source, target in edges:
        bound.setdefault(source, set()).add(target)
        bound.setdefault(target, set()).add(source)
    longest = max(map(len, columns.values()))
    places: dict[str, tuple[int, int]] = {}
    for distance, column in sorted(columns.items()):
        heights = {
            node.id: mean(
                [places[each][1] for each in bound.get(node.id, ()) if each in places] or [0]
            )
            for node in column
        }
        column.sort(key=lambda node: (heights[node.id], node.title))
        start = _TOP + (longest - len(column)) * _ROW // 2
        for row, node in enumerate(column):
            places[node.id] = 14 + distance * _COLUMN, start + row * _ROW
    return places


def _line(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x1, y1), (x2, y2) = sorted((start, end))
    if x1 == x2:
        return f'<path d="M{x1} {y1} C{x1 - 40} {y1} {x1 - 40} {y2} {x2} {y2}"/>'
    middle = x2 - _COLUMN // 4
    return f'<path d="M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}"/>'


def _shown(text: str) -> str:
    return escape(printable(text))


def _mark(node: Node, distance: int, place: tuple[int, int]) -> str:
    x, y = place
    short = node.title if len(node.title) <= _LABEL_CHARS else "\u2026" + node.title[-_LABEL_CHARS:]
    size = 7 if distance == 0 else 5
    return (
        f'<a href="{escape(link("objects", node.id))}"><title>{_shown(node.title)}</title>'
        f'<circle class="d{min(distance, 3)}" cx="{x}" cy="{y}" r="{size}"/>'
        f'<text x="{x + size + 5}" y="{y + 4}">{_shown(short)}</text></a>'
    )

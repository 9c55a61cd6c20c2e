"""A graph drawn in rings: the object in the middle, what is one reference away around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from foredeck.model.quoting import printable
from foredeck.ui.pages import link

SIZE = 800
_RING = 150
_LABEL_CHARS = 28


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of the drawing, and how many references it is away from the middle."""

    id: str
    title: str
    distance: int


def drawing(nodes: Sequence[GraphNode], edges: Sequence[tuple[str, str]]) -> Markup:
    """The graph as SVG; empty for less than two nodes."""
    if len(nodes) < 2:
        return Markup()
    places = _places(nodes)
    lines = "".join(
        '<line x1="{:.0f}" y1="{:.0f}" x2="{:.0f}" y2="{:.0f}"/>'.format(
            *places[source], *places[target]
        )
        for source, target in edges
        if source in places and target in places and source != target
    )
    marks = "".join(_mark(node, places[node.id]) for node in nodes)
    return Markup(  # every text in it was escaped
        f'<svg class="graph" role="group" aria-label="Graph of references" '
        f'viewBox="0 0 {SIZE} {SIZE}">{lines}{marks}</svg>'
    )


def _places(nodes: Sequence[GraphNode]) -> dict[str, tuple[float, float]]:
    rings: dict[int, list[GraphNode]] = {}
    for node in nodes:
        rings.setdefault(node.distance, []).append(node)
    middle, step = SIZE / 2, min(_RING, (SIZE / 2 - 60) / max(1, max(rings)))
    places: dict[str, tuple[float, float]] = {}
    for distance, ring in rings.items():
        for number, node in enumerate(ring):
            # Half a step aside in each ring, so that labels of two rings do not meet.
            angle = 2 * math.pi * (number + distance / 2) / len(ring)
            radius = distance * step
            places[node.id] = (
                middle + radius * math.cos(angle),
                middle + radius * math.sin(angle),
            )
    return places


def _shown(text: str) -> str:
    return escape(printable(text))


def _mark(node: GraphNode, place: tuple[float, float]) -> str:
    x, y = place
    short = node.title if len(node.title) <= _LABEL_CHARS else "…" + node.title[-_LABEL_CHARS:]
    size = 9 if node.distance == 0 else 6
    return (
        f'<a href="{escape(link("objects", node.id))}"><title>{_shown(node.title)}</title>'
        f'<circle class="d{min(node.distance, 3)}" cx="{x:.0f}" cy="{y:.0f}" r="{size}"/>'
        f'<text x="{x:.0f}" y="{y + size + 12:.0f}">{_shown(short)}</text></a>'
    )

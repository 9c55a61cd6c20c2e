"""The frontier as a picture: cost against each evidence, an SVG made by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 980, 480
PANEL_WIDTH, PANEL_HEIGHT = 395, 330
TOP = 70
LEFTS = (65, 550)
DEAREST = 150.0
"""Percent of plain Pi's cost; what is dearer stands at the edge of the panel, with its figures."""

LABEL_HEIGHT, CHAR_WIDTH = 13, 6.3

PANELS = (
    ("edit_evidence_percent", "edited text in view, %"),
    ("identifier_evidence_percent", "copied identifiers in view, %"),
)
PLAIN, OURS = "#6b7280", "#1d4ed8"

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True, slots=True)
class Point:
    """A row of the table in one panel."""

    name: str
    cost: float
    all_in: float
    evidence: float

    @property
    def colour(self) -> str:
        """Plain Pi is grey."""
        return PLAIN if self.name.startswith("plain Pi") else OURS

    @property
    def label(self) -> str:
        """The name, without what is the same for most."""
        name = self.name.removeprefix("anchored, ")
        if self.cost <= DEAREST:
            return name
        return f"{name} (cost {self.cost:.0f}, in view {self.evidence:.0f})"


def frontier_svg(rows: Sequence[Mapping[str, Any]], title: str) -> str:
    """The picture of a table's rows. A full dot is the cost of a row, a hollow one its cost with
    what it missed fetched again; the line joins the rows that none other beats."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="Helvetica, Arial, sans-serif" '
        'font-size="11" fill="#111827">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFTS[0]}" y="24" font-size="15" font-weight="bold">{escape(title)}</text>',
        f'<text x="{LEFTS[0]}" y="44" fill="#4b5563">Up and left is better. Full dot: cost; '
        "hollow: cost with what was missed fetched again. Line: what no other row beats.</text>",
    ]
    for left, (key, axis) in zip(LEFTS, PANELS, strict=True):
        points = [
            Point(row["row"], row["cost_percent"], row["all_in_percent"], row[key])
            for row in rows
            if None not in (row["cost_percent"], row["all_in_percent"], row[key])
        ]
        parts += _Panel(left, points, axis).draw()
    return "\n".join([*parts, "</svg>", ""])


def unbeaten(points: Sequence[Point]) -> list[Point]:
    """Points to which none is at least as cheap and as good, cheapest first."""
    found: list[Point] = []
    for point in sorted(points, key=lambda p: (p.cost, -p.evidence)):
        if not found or point.evidence > found[-1].evidence:
            found.append(point)
    return found


class _Panel:
    def __init__(self, left: float, points: Sequence[Point], axis: str) -> None:
        self._left = left
        self._points = points
        self._axis = axis
        near = [point for point in points if point.cost <= DEAREST]
        costs = [cost for p in near for cost in (p.cost, min(DEAREST, p.all_in))]
        self._x0 = 10 * math.floor((min(costs, default=100) - 2) / 10)
        self._x1 = 10 * math.ceil((max(costs, default=100) + 1) / 10)
        lowest = min((p.evidence for p in near), default=95)
        self._y0 = min(95, math.floor(lowest - 1))
        self._y1 = 100.5

    def draw(self) -> Iterator[str]:
        """Axes, frontier, dots, labels."""
        yield from self._axes()
        line = " ".join(f"{self._x(p.cost):.1f},{self._y(p.evidence):.1f}" for p in self._front())
        yield f'<polyline points="{line}" fill="none" stroke="#93c5fd" stroke-width="2"/>'
        for point in self._points:
            yield from self._dot(point)
        yield from self._labels()

    def _front(self) -> list[Point]:
        return unbeaten([point for point in self._points if point.cost <= DEAREST])

    def _x(self, cost: float) -> float:
        share = (min(cost, self._x1) - self._x0) / (self._x1 - self._x0)
        return self._left + share * PANEL_WIDTH

    def _y(self, evidence: float) -> float:
        share = (max(evidence, self._y0) - self._y0) / (self._y1 - self._y0)
        return TOP + (1 - share) * PANEL_HEIGHT

    def _axes(self) -> Iterator[str]:
        bottom = TOP + PANEL_HEIGHT
        yield (
            f'<rect x="{self._left}" y="{TOP}" width="{PANEL_WIDTH}" height="{PANEL_HEIGHT}" '
            'fill="#f9fafb" stroke="#d1d5db"/>'
        )
        for cost in range(int(self._x0), int(self._x1) + 1, 10):
            x = self._x(cost)
            yield f'<path d="M{x:.1f} {TOP}V{bottom}" stroke="#e5e7eb"/>'
            yield f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{cost}</text>'
        step = 5 if self._y1 - self._y0 > 12 else 1
        for evidence in range(-(-self._y0 // step) * step, 101, step):
            y = self._y(evidence)
            yield f'<path d="M{self._left} {y:.1f}H{self._left + PANEL_WIDTH}" stroke="#e5e7eb"/>'
            yield f'<text x="{self._left - 6}" y="{y + 4:.1f}" text-anchor="end">{evidence}</text>'
        middle = self._left + PANEL_WIDTH / 2
        yield (
            f'<text x="{middle}" y="{bottom + 36}" text-anchor="middle">'
            "cost, % of plain Pi with its own compaction</text>"
        )
        yield f'<text x="{self._left}" y="{TOP - 8}" font-weight="bold">{escape(self._axis)}</text>'

    def _dot(self, point: Point) -> Iterator[str]:
        x, y, far = self._x(point.cost), self._y(point.evidence), self._x(point.all_in)
        if far - x > 1:
            yield f'<path d="M{x:.1f} {y:.1f}H{far:.1f}" stroke="{point.colour}" opacity="0.35"/>'
            yield (
                f'<circle cx="{far:.1f}" cy="{y:.1f}" r="3" fill="#ffffff" '
                f'stroke="{point.colour}" opacity="0.6"/>'
            )
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{point.colour}"/>'

    def _labels(self) -> Iterator[str]:
        """Each label where it covers neither a dot nor another label."""
        taken: list[Box] = []
        for point in self._points:
            x, y, far = self._x(point.cost), self._y(point.evidence), self._x(point.all_in)
            taken += [_around(x, y, 6.0), _around(far, y, 4.0), (x, y - 2, far, y + 2)]
        for point in sorted(self._points, key=lambda p: p.cost):
            box = self._place(point, taken)
            taken.append(box)
            yield from self._leader(point, box)
            yield (
                f'<text x="{box[0]:.1f}" y="{box[3] - 3:.1f}" fill="{point.colour}">'
                f"{escape(point.label)}</text>"
            )

    def _leader(self, point: Point, box: Box) -> Iterator[str]:
        """A line from a dot to its label, where they do not stand side by side."""
        x, y = self._x(point.cost), self._y(point.evidence)
        near_x = min(max(x, box[0]), box[2])
        near_y = min(max(y, box[1] + 2), box[3] - 2)
        if abs(near_y - y) > 3:
            yield (
                f'<path d="M{x:.1f} {y:.1f}L{near_x:.1f} {near_y:.1f}" '
                f'stroke="{point.colour}" stroke-width="0.7" opacity="0.7"/>'
            )

    def _place(self, point: Point, taken: Sequence[Box]) -> Box:
        x, y = self._x(point.cost), self._y(point.evidence)
        width = len(point.label) * CHAR_WIDTH
        right = self._left + PANEL_WIDTH
        best, least = (x, y, x + width, y + LABEL_HEIGHT), math.inf
        for distance in range(0, 90, 6):
            for side, sign in ((8.0, -1), (8.0, 1), (-8.0 - width, -1), (-8.0 - width, 1)):
                left = min(max(x + side, self._left + 2), right - width - 2)
                top = y - LABEL_HEIGHT / 2 + sign * distance
                if not TOP <= top <= TOP + PANEL_HEIGHT - LABEL_HEIGHT:
                    continue
                box = (left, top, left + width, top + LABEL_HEIGHT)
                covered = sum(_overlap(box, other) for other in taken)
                if covered + distance / 2 < least:
                    best, least = box, covered + distance / 2
        return best


def _around(x: float, y: float, radius: float) -> Box:
    return x - radius, y - radius, x + radius, y + radius


def _overlap(one: Box, other: Box) -> float:
    """Area that two boxes share."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, width) * max(0.0, height)

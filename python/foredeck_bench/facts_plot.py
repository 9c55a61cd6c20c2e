"""Prompt size and cost over the calls of a session, as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT, LEFT, TOP, GAP = 860, 260, 90, 40, 60
COLOURS = ("#0b6e4f", "#c8553d", "#345995", "#8a6d3b")

Point = Sequence[float]


def facts_svg(rows: Sequence[Mapping[str, Any]], title: str) -> str:
    """Two panels above each other: tokens of each prompt, and the cost so far, by call."""
    height = TOP + 2 * (HEIGHT + GAP) + 20 * len(rows)
    panels = [
        _panel(rows, 1, "tokens of the prompt", TOP),
        _panel(rows, 2, "cost so far, in uncached input tokens", TOP + HEIGHT + GAP),
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 40}" '
            f'height="{height}" font-family="sans-serif" font-size="13">',
            '<rect width="100%" height="100%" fill="white"/>',
            f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
            *panels,
            *_legend(rows, TOP + 2 * (HEIGHT + GAP)),
            "</svg>\n",
        ]
    )


def _panel(rows: Sequence[Mapping[str, Any]], column: int, label: str, top: int) -> str:
    most = max((p[column] for row in rows for p in row["points"]), default=1) or 1
    last = max((p[0] for row in rows for p in row["points"]), default=1) or 1
    lines = [
        f'<text x="{LEFT}" y="{top + 12}">{label}</text>',
        f'<path d="M{LEFT} {top + 20}V{top + HEIGHT}H{LEFT + WIDTH}" fill="none" stroke="#888"/>',
        f'<text x="{LEFT - 6}" y="{top + 24}" text-anchor="end">{_short(most)}</text>',
        f'<text x="{LEFT - 6}" y="{top + HEIGHT}" text-anchor="end">0</text>',
        f'<text x="{LEFT + WIDTH}" y="{top + HEIGHT + 18}" text-anchor="end">call {last:,}</text>',
    ]
    for number, row in enumerate(rows):
        heights = ((p[0] / last, (HEIGHT - 20) * p[column] / most) for p in row["points"])
        places = (f"{LEFT + WIDTH * x:.1f},{top + HEIGHT - y:.1f}" for x, y in heights)
        lines.append(
            f'<polyline points="{" ".join(places)}" fill="none" stroke-width="1.6" '
            f'stroke="{COLOURS[number % len(COLOURS)]}"/>'
        )
    return "\n".join(lines)


def _legend(rows: Sequence[Mapping[str, Any]], top: int) -> list[str]:
    return [
        f'<text x="{LEFT}" y="{top + 20 * number}" fill="{COLOURS[number % len(COLOURS)]}">'
        f"{escape(row['row'])}</text>"
        for number, row in enumerate(rows)
    ]


def _short(value: float) -> str:
    return f"{value / 1e6:.1f}M" if value >= 1e6 else f"{value / 1000:.0f}k"

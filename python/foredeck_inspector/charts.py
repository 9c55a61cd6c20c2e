"""Charts as SVG, each beside a table, and the graph of references."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from html import escape
from itertools import accumulate
from statistics import mean
from typing import Any

from markupsafe import Markup

from foredeck.accounting.stored import Kind
from foredeck.model.figures import counted, money, short_count, some_of
from foredeck.model.quoting import printable
from foredeck.notes.graph import Node
from foredeck_inspector.book import BookedCall
from foredeck_inspector.pages import link

WIDTH, HEIGHT = 1000, 200
OUTLINE_HEIGHT = 36
WEEKS = 26
_TICKS = 5
_FAR = 4
"""A window so many times as high as the prompts has no line."""
_SHOWN_HANDLES = 12
_CENTS = 8
"""Below, an axis has cents."""
_LEAST_BARS = 20
"""A shorter session is drawn as if it had these."""
_LABEL = 11

Address = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Scale:
    """An upright axis from 0 to `top`."""

    top: float

    @staticmethod
    def of_prompts(calls: Sequence[BookedCall]) -> Scale:
        """An axis for prompts, and for the window if that is near."""
        highest = max([1, *(max(call.sent, call.plain) for call in calls)])
        window = _window(calls)
        return Scale(1.03 * (max(highest, window) if window <= highest * _FAR else highest))

    def y(self, value: float) -> float:
        return HEIGHT - min(value, self.top) * HEIGHT / self.top

    @property
    def ticks(self) -> list[float]:
        """Round values on it."""
        unit = 10 ** math.floor(math.log10(self.top / _TICKS))
        step = next(unit * s for s in (1, 2, 2.5, 5, 10) if self.top / (unit * s) <= _TICKS)
        return [step * number for number in range(int(self.top / step) + 1)]


def bars(calls: Sequence[BookedCall], address: Address, scale: Scale | None = None) -> Markup:
    """A bar per prompt, with plain Pi's, the window, and marks for rebases."""
    if not calls:
        return Markup()
    scale, window = scale or Scale.of_prompts(calls), _window(calls)
    step = WIDTH / max(len(calls), _LEAST_BARS)
    drawn = [_bar(call, address, at * step, step, scale) for at, call in enumerate(calls)]
    drawn += [_level(scale.y(tick), "grid") for tick in scale.ticks[1:]]
    if window and window <= scale.top:
        drawn.append(_level(scale.y(window), "window"))
    plain = [scale.y(call.plain) for call in calls]
    line = " ".join(
        f"{at * step:.1f},{y:.1f} {(at + 1) * step:.1f},{y:.1f}" for at, y in enumerate(plain)
    )
    drawn.append(f'<polyline class="plain" points="{line}" vector-effect="non-scaling-stroke"/>')
    places = dict.fromkeys((0, len(calls) // 2, len(calls) - 1))
    below = [f"call {calls[at].ordinal}" for at in places]
    if len(calls) < _LEAST_BARS:
        below = below[:1]
    label = "Tokens of each prompt, by what they were made of"
    return _plot(label, scale, drawn, below, short_count)


def _window(calls: Sequence[BookedCall]) -> int:
    return next((call.window for call in reversed(calls) if call.window), 0)


def weeks_chart(rows: Sequence[tuple[str, float | None, float | None]]) -> Markup:
    """Dollars by week, with a line for the cost without foredeck."""
    spent = {week: (cost or 0.0, plain or 0.0) for week, cost, plain in rows}
    if not any(cost for cost, _ in spent.values()):
        return Markup()
    last = date.fromisoformat(max(spent))
    first = max(date.fromisoformat(min(spent)), last - timedelta(weeks=WEEKS - 1))
    weeks = [first + timedelta(weeks=n) for n in range((last - first).days // 7 + 1)]
    highest = [max(spent.get(week.isoformat(), (0.0, 0.0))) for week in weeks]
    scale = Scale(1.05 * max(0.01, *highest))
    step = WIDTH / max(8, len(weeks))
    drawn = [_level(scale.y(tick), "grid") for tick in scale.ticks[1:]]
    for at, week in enumerate(weeks):
        cost, plain = spent.get(week.isoformat(), (0.0, 0.0))
        x, y, high = at * step, scale.y(cost), scale.y(plain)
        more = f", without foredeck {money(plain)}" if plain != cost else ""
        drawn.append(
            f"<g><title>week of {week}: {money(cost)}{more}</title>"
            f'<rect class="column" x="{x:.1f}" y="0" width="{step:.1f}" height="{HEIGHT}"/>'
            f'<rect class="spent" x="{x + 3:.1f}" y="{y:.1f}" width="{step - 6:.1f}" '
            f'height="{HEIGHT - y:.1f}"/>'
        )
        if plain != cost:
            drawn.append(
                f'<line class="plain" x1="{x:.1f}" x2="{x + step:.1f}" y1="{high:.1f}" '
                f'y2="{high:.1f}" vector-effect="non-scaling-stroke"/>'
            )
        drawn.append("</g>")
    below = [str(week) for week in dict.fromkeys((weeks[0], weeks[-1]))]
    words = money if scale.top < _CENTS else lambda value: f"${value:,.0f}"
    return _plot("Dollars spent, week by week", scale, drawn, below, words)


def _plot(
    label: str,
    scale: Scale,
    drawn: Sequence[str],
    below: Sequence[str],
    words: Callable[[float], str],
) -> Markup:
    """A drawing with its axes; `below`: texts under it."""
    # The upright axis is a drawing of its own: texts in the chart would be stretched with it.
    ticks = "".join(
        f'<text x="46" y="{scale.y(tick) + _LABEL:.1f}">{escape(words(tick))}</text>'
        for tick in scale.ticks
    )
    flat = "".join(f"<span>{escape(text)}</span>" for text in below)
    return Markup(  # every text in it was escaped
        f'<div class="plot"><svg class="axis-y" aria-hidden="true" width="50" '
        f'height="{HEIGHT + 2 * _LABEL}">{ticks}</svg>'
        f"{_svg(label, HEIGHT, ''.join(drawn))}"
        f'<div class="axis-x" aria-hidden="true">{flat}</div></div>'
    )


def _level(y: float, kind: str) -> str:
    return (
        f'<line class="{kind}" x1="0" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" '
        'vector-effect="non-scaling-stroke"/>'
    )


def _bar(call: BookedCall, address: Address, x: float, step: float, scale: Scale) -> str:
    sizes = call.kinds or {Kind.CHAT: call.sent}
    tops = list(accumulate(sizes.get(kind, 0) for kind in Kind))
    width = max(0.5, step - (1 if step > 3 else 0))
    rects = "".join(
        f'<rect class="k-{kind if call.kinds else "unknown"}" x="{x:.1f}" y="{scale.y(top):.1f}" '
        f'width="{width:.1f}" height="{sizes[kind] * HEIGHT / scale.top:.1f}"/>'
        for kind, top in zip(Kind, tops, strict=True)
        if sizes.get(kind)
    )
    # The whole column can be pointed at, and not only the bar.
    rects = f'<rect class="column" x="{x:.1f}" y="0" width="{step:.1f}" height="{HEIGHT}"/>{rects}'
    if call.kind == "rebase":
        top, half = scale.y(tops[-1]) - 2, min(width, 12) / 2
        middle = x + width / 2
        rects += f'<path class="rebase" d="M{middle - half:.1f} {top - 7:.1f} h{2 * half:.1f} '
        rects += f'l{-half:.1f} 6 z"/>'
    leads = escape(address(call.ordinal))
    return f'<a href="{leads}" tabindex="-1"><title>{escape(_said(call))}</title>{rects}</a>'


def _said(call: BookedCall) -> str:
    said = [
        f"call {call.ordinal}: {short_count(call.sent)} tokens, plain Pi {short_count(call.plain)}",
        ", ".join(f"{kind} {short_count(size)}" for kind, size in call.kinds.items() if size),
    ]
    if call.folded:
        said.append(f"{counted(call.folded, 'object')} folded")
    if call.folded_now:
        said.append(f"folded now: {some_of(call.folded_now, _SHOWN_HANDLES, ' ')}")
    if call.why:
        said.append(f"rewritten: {call.why}" if call.kind == "rebase" else f"went out {call.why}")
    if call.lost:
        said.append(f"lost: {call.lost}")
    return "\n".join(filter(None, said))


def outline(
    sizes: Sequence[int],
    first: int,
    per_page: int,
    address: Address,
    spans: Sequence[dict[str, Any]] = (),
) -> Markup:
    """All calls as one line of prompt sizes, the part from `first` on marked.

    `spans`: how much calls show of a text.
    """
    if len(sizes) <= per_page and not spans:
        return Markup()
    most, step = max(sizes, default=1) or 1, WIDTH / len(sizes)
    # More points than pixels would only make the page larger.
    columns = min(WIDTH, len(sizes))
    picked = [sizes[at * len(sizes) // columns] for at in range(columns)]
    points = " ".join(
        f"{at * WIDTH / columns:.1f},{OUTLINE_HEIGHT - size * OUTLINE_HEIGHT / most:.1f}"
        for at, size in enumerate(picked)
    )
    drawn = [
        f'<polygon class="outline" points="0,{OUTLINE_HEIGHT} {points} {WIDTH},{OUTLINE_HEIGHT}"/>'
    ]
    drawn += [
        f"<g><title>calls {span['first']} to {span['last']}: {escape(span['state'])}</title>"
        f'<rect class="s-{span["state"].replace(" ", "-")}" x="{(span["first"] - 1) * step:.1f}" '
        f'y="0" width="{(span["last"] - span["first"] + 1) * step:.1f}" height="9"/></g>'
        for span in spans
    ]
    for start in range(1, len(sizes) + 1, per_page) if len(sizes) > per_page else ():
        here = "here" if start <= first < start + per_page else "page"
        last = min(start + per_page - 1, len(sizes))
        drawn.append(
            f'<a href="{escape(address(start))}" tabindex="-1">'
            f"<title>calls {start} to {last}</title>"
            f'<rect class="{here}" x="{(start - 1) * step:.1f}" y="9" '
            f'width="{per_page * step:.1f}" height="{OUTLINE_HEIGHT - 9}"/></a>'
        )
    return _svg("Sizes of all prompts of the session", OUTLINE_HEIGHT, "".join(drawn))


def _svg(label: str, height: int, inner: str) -> Markup:
    return Markup(  # every text in it was escaped above
        f'<svg role="group" aria-label="{escape(label)}" viewBox="0 0 {WIDTH} {height}" '
        f'preserveAspectRatio="none">{inner}</svg>'
    )


# What refers to what: a column for each step


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

"""Charts as SVG, without a script. Beside each is a table with the same figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import accumulate
from statistics import mean

from markupsafe import Markup

from foredeck.accounting.stored import Composition, Kind
from foredeck.model.call_values import CHARS_PER_TOKEN, REASONS, Decision
from foredeck.model.calls import CallRecord
from foredeck.model.figures import counted, short_count, some_of
from foredeck.model.quoting import printable
from foredeck.notes.graph import Node
from foredeck.ui.pages import link

WIDTH, HEIGHT = 1000, 200
OUTLINE_HEIGHT = 36
_TICKS = 4
_FAR = 4
"""How many times as high as the highest prompt the window may be and still have its line."""
_SHOWN_HANDLES = 12

Address = Callable[[int], str]
"""The address of a call, by its number."""


def tokens_of(record: CallRecord, chars: int) -> int:
    """Characters of a call's prompt in tokens, at the rate that was gauged at the time."""
    return round(chars / (record.stats.rate or CHARS_PER_TOKEN))


def why(decision: Decision) -> str:
    """Why a prompt was rewritten, in words; empty where it was not."""
    if not decision.is_rebase:
        return ""
    return REASONS.get(decision.reason or "", str(decision.reason))


def folded_handles(record: CallRecord) -> list[str]:
    """The objects that a call has folded to a line."""
    folded = (row.subject for row in record.ops if row.form == "reference")
    return [f"@{handle}" for handle in dict.fromkeys(folded) if handle is not None]


def bars(made: Sequence[Composition], address: Address) -> Markup:
    """One bar for each prompt, its kinds stacked, in tokens; over them what plain Pi would have
    sent, and the window; a mark above those that a rebase rewrote."""
    if not made:
        return Markup()
    plain = [tokens_of(one.record, one.record.stats.chars_host) for one in made]
    highest = max(*(tokens_of(one.record, one.total) for one in made), *plain, 1)
    # A window of a million tokens over prompts of ten thousand would press the bars flat.
    window = made[-1].record.model.window
    shows_window = window is not None and window <= highest * _FAR
    top = _nice(max(highest, window or 0) if shows_window else highest)
    step, scale = WIDTH / len(made), HEIGHT / top
    drawn = [_bar(one, address, at * step, step, scale) for at, one in enumerate(made)]
    lines = _grid()
    if window is not None and shows_window:
        lines.append(_level(window * scale, "window"))
    line = " ".join(f"{at * step:.1f},{HEIGHT - n * scale:.1f} {(at + 1) * step:.1f},"
                    f"{HEIGHT - n * scale:.1f}" for at, n in enumerate(plain))  # fmt: skip
    lines.append(f'<polyline class="plain" points="{line}" vector-effect="non-scaling-stroke"/>')
    label = "Tokens of each prompt, by what they were made of"
    places = dict.fromkeys((0, len(made) // 2, len(made) - 1))
    calls = [f"call {made[at].record.ordinal}" for at in places]
    return _plot(label, top, drawn + lines, calls)


def days(spent: Sequence[tuple[str, int, int]]) -> Markup:
    """A bar for each day: what it has cost, with a line at what plain Pi would have."""
    top = _nice(max((max(cost, plain) for _, cost, plain in spent), default=1))
    step, scale = WIDTH / max(1, len(spent)), HEIGHT / top
    drawn = _grid()
    for at, (day, cost, plain) in enumerate(spent):
        x, tall, high = at * step, cost * scale, HEIGHT - plain * scale
        more = f", plain Pi {short_count(plain)}" if plain != cost else ""
        drawn.append(
            f"<g><title>{escape(day)}: {short_count(cost)} tokens{more}</title>"
            f'<rect class="column" x="{x:.1f}" y="0" width="{step:.1f}" height="{HEIGHT}"/>'
            f'<rect class="spent" x="{x + 2:.1f}" y="{HEIGHT - tall:.1f}" '
            f'width="{step - 4:.1f}" height="{tall:.1f}"/>'
        )
        if plain != cost:
            drawn.append(
                f'<line class="plain" x1="{x:.1f}" x2="{x + step:.1f}" y1="{high:.1f}" '
                f'y2="{high:.1f}" vector-effect="non-scaling-stroke"/>'
            )
        drawn.append("</g>")
    shown = [day for day, _, _ in (*spent[:1], *spent[-1:])]
    return _plot("What was spent, day by day", top, drawn, shown)


def _plot(label: str, top: int, drawn: Sequence[str], below: Sequence[str]) -> Markup:
    """What was drawn, with its axes: tokens up to `top`, and the texts `below`."""
    # The labels are HTML: text in the SVG would be stretched with it.
    ticks = (short_count(round(top * tick / _TICKS)) for tick in range(_TICKS, -1, -1))
    upright, flat = (
        "".join(f"<span>{escape(text)}</span>" for text in texts) for texts in (ticks, below)
    )
    return Markup(  # every text in it was escaped
        f'<div class="plot"><div class="axis-y" aria-hidden="true">{upright}</div>'
        f"{_svg(label, HEIGHT, ''.join(drawn))}"
        f'<div class="axis-x" aria-hidden="true">{flat}</div></div>'
    )


def _grid() -> list[str]:
    return [_level(HEIGHT * tick / _TICKS, "grid") for tick in range(1, _TICKS + 1)]


def _nice(most: float) -> int:
    """The next round number, whose quarters are round, too."""
    unit = 10 ** math.floor(math.log10(most / _TICKS)) if most > _TICKS else 1
    steps = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
    return math.ceil(next(unit * s * _TICKS for s in steps if unit * s * _TICKS >= most))


def _level(height: float, kind: str) -> str:
    y = HEIGHT - height
    return (
        f'<line class="{kind}" x1="0" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" '
        'vector-effect="non-scaling-stroke"/>'
    )


def _bar(one: Composition, address: Address, x: float, step: float, scale: float) -> str:
    record = one.record
    sizes = [(kind, tokens_of(record, one.chars[kind]) * scale) for kind in Kind]
    tops = list(accumulate(size for _, size in sizes))
    width = max(0.5, step - (1 if step > 3 else 0))
    rects = "".join(
        f'<rect class="k-{kind}" x="{x:.1f}" y="{HEIGHT - top:.1f}" '
        f'width="{width:.1f}" height="{size:.1f}"/>'
        for (kind, size), top in zip(sizes, tops, strict=True)
        if size > 0
    )
    # The whole column can be pointed at, and not only the bar.
    rects = f'<rect class="column" x="{x:.1f}" y="0" width="{step:.1f}" height="{HEIGHT}"/>{rects}'
    if record.decision.is_rebase:
        top, half = HEIGHT - tops[-1] - 2, min(width, 12) / 2
        middle = x + width / 2
        rects += f'<path class="rebase" d="M{middle - half:.1f} {top - 7:.1f} h{2 * half:.1f} '
        rects += f'l{-half:.1f} 6 z"/>'
    link = escape(address(record.ordinal))
    return f'<a href="{link}" tabindex="-1"><title>{escape(_said(one))}</title>{rects}</a>'


def _said(one: Composition) -> str:
    """What pointing at a bar says."""
    record, stats = one.record, one.record.stats
    sent, plain = tokens_of(record, one.total), tokens_of(record, stats.chars_host)
    said = [
        f"call {record.ordinal}: {short_count(sent)} tokens, plain Pi {short_count(plain)}",
        ", ".join(
            f"{kind} {short_count(tokens_of(record, one.chars[kind]))}"
            for kind in Kind
            if one.chars[kind]
        ),
    ]
    if stats.folded:
        said.append(f"{counted(stats.folded, 'object')} folded")
    if record.decision.is_host:
        said.append("went out without foredeck")
    if handles := folded_handles(record):
        said.append(f"folded now: {some_of(handles, _SHOWN_HANDLES, ' ')}")
    if reason := why(record.decision):
        said.append(f"rewritten: {reason}")
    if lost := record.lost.sum.text:
        said.append(f"lost: {lost}")
    return "\n".join(said)


def outline(records: Sequence[CallRecord], first: int, per_page: int, address: Address) -> Markup:
    """All calls of a session as one line of prompt sizes, with the part from call `first` on
    marked (0: none). `address`: of the part that begins with a call."""
    if len(records) <= per_page:
        return Markup()
    sizes = [record.stats.chars_sent for record in records]
    most = max(sizes) or 1
    # More points than pixels would only make the page larger.
    columns = min(WIDTH, len(sizes))
    picked = [sizes[at * len(sizes) // columns] for at in range(columns)]
    points = " ".join(
        f"{at * WIDTH / columns:.1f},{OUTLINE_HEIGHT - size * OUTLINE_HEIGHT / most:.1f}"
        for at, size in enumerate(picked)
    )
    line = (
        f'<polygon class="outline" points="0,{OUTLINE_HEIGHT} {points} {WIDTH},{OUTLINE_HEIGHT}"/>'
    )
    pages = []
    for start in range(1, len(sizes) + 1, per_page):
        x, width = (start - 1) * WIDTH / len(sizes), per_page * WIDTH / len(sizes)
        here = "here" if start <= first < start + per_page else "page"
        last = min(start + per_page - 1, len(sizes))
        pages.append(
            f'<a href="{escape(address(start))}" tabindex="-1">'
            f"<title>calls {start} to {last}</title>"
            f'<rect class="{here}" x="{x:.1f}" y="0" width="{width:.1f}" '
            f'height="{OUTLINE_HEIGHT}"/></a>'
        )
    return _svg("Sizes of all prompts of the session", OUTLINE_HEIGHT, line + "".join(pages))


def _svg(label: str, height: int, inner: str) -> Markup:
    return Markup(  # every text in it was escaped above
        f'<svg role="group" aria-label="{escape(label)}" viewBox="0 0 {WIDTH} {height}" '
        f'preserveAspectRatio="none">{inner}</svg>'
    )


# Graphs


_COLUMN, _ROW, _TOP = 330, 24, 20
_LABEL_CHARS = 38


Nodes = Sequence[tuple[Node, int]]
"""Each with how many references it is away from the first."""


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
    """The place of each node: in a column the order is that of those it is bound to in the column
    before, so that few lines cross."""
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
    """A curve from one node to another; one within a column bows out to the left."""
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

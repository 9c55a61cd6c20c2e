"""Charts as SVG, without a script. Each stands beside a table that says the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from itertools import accumulate

from markupsafe import Markup

from foredeck.accounting.composition import Composition, Kind
from foredeck.lookup.texts import short_count
from foredeck.model.calls import CallRecord

WIDTH, HEIGHT = 1000, 180
OUTLINE_HEIGHT = 36


Address = Callable[[int], str]
"""Where a call leads to, by its number."""


def bars(made: Sequence[Composition], address: Address) -> Markup:
    """One bar for each prompt, its kinds stacked; a mark above those that a rebase rewrote."""
    if not made:
        return Markup()
    most = max(one.total for one in made) or 1
    step = WIDTH / len(made)
    parts = [
        _bar(one, address(one.record.ordinal), at * step, step, most) for at, one in enumerate(made)
    ]
    return _svg("What the prompts were made of", HEIGHT, "".join(parts))


def _bar(one: Composition, address: str, x: float, step: float, most: int) -> str:
    scale = (HEIGHT - 14) / most
    sizes = [(kind, one.chars[kind] * scale) for kind in Kind]
    tops = accumulate(size for _, size in sizes)
    width = max(0.5, step - (1 if step > 3 else 0))
    rects = "".join(
        f'<rect class="k-{kind}" x="{x:.1f}" y="{HEIGHT - top:.1f}" '
        f'width="{width:.1f}" height="{size:.1f}"/>'
        for (kind, size), top in zip(sizes, tops, strict=True)
        if size > 0
    )
    decision = one.record.decision
    said = f"call {one.record.ordinal}: {short_count(one.total)} characters"
    if decision.is_rebase:
        top = HEIGHT - one.total * scale - 2
        rects += (
            f'<path class="rebase" d="M{x:.1f} {top - 7:.1f} h{width:.1f} l{-width / 2:.1f} 6 z"/>'
        )
        said += f", rebase ({decision.reason})"
    elif decision.is_host:
        said += ", went out without foredeck"
    return f'<a href="{escape(address)}" tabindex="-1"><title>{escape(said)}</title>{rects}</a>'


def outline(records: Sequence[CallRecord], first: int, per_page: int, address: Address) -> Markup:
    """All calls of a session as one line of prompt sizes, with the part from call `first` on
    marked (0: none). `address`: of the part that begins with a call."""
    if len(records) <= per_page:
        return Markup()
    sizes = [record.stats.chars_sent for record in records]
    most = max(sizes) or 1
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

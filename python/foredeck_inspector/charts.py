"""Charts as SVG, each beside a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate
from typing import Any, cast

from markupsafe import Markup

from foredeck.accounting.stored import Kind
from foredeck.model.figures import counted, money, short_count, some_of
from foredeck_inspector.book import BookedCall
from foredeck_inspector.pages import environment

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

Address = Callable[[int], str]


def _draw(name: str, **values: Any) -> Markup:
    """A drawing of `charts.html`."""
    sizes = {"WIDTH": WIDTH, "HEIGHT": HEIGHT}
    drawings = environment().get_template("charts.html").make_module(sizes)
    return cast(Markup, getattr(drawings, name)(**values))


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
        return round(HEIGHT - min(value, self.top) * HEIGHT / self.top, 1)

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
    places = dict.fromkeys((0, len(calls) // 2, len(calls) - 1))
    below = [f"call {calls[at].ordinal}" for at in places]
    return _draw(
        "bars",
        scale=scale,
        step=step,
        width=max(0.5, step - (1 if step > 3 else 0)),
        bars=[_bar(call, address, scale) for call in calls],
        plain=[call.plain for call in calls],
        window=window if window <= scale.top else 0,
        words=short_count,
        below=below[:1] if len(calls) < _LEAST_BARS else below,
    )


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
    costs = [spent.get(week.isoformat(), (0.0, 0.0)) for week in weeks]
    scale = Scale(1.05 * max(0.01, *map(max, costs)))
    drawn = []
    for week, (cost, plain) in zip(weeks, costs, strict=True):
        more = f", without foredeck {money(plain)}" if plain != cost else ""
        drawn.append((f"week of {week}: {money(cost)}{more}", scale.y(cost), scale.y(plain)))
    return _draw(
        "weeks",
        scale=scale,
        step=WIDTH / max(8, len(weeks)),
        weeks=drawn,
        words=money if scale.top < _CENTS else lambda value: f"${value:,.0f}",
        below=[str(week) for week in dict.fromkeys((weeks[0], weeks[-1]))],
    )


def _bar(call: BookedCall, address: Address, scale: Scale) -> dict[str, Any]:
    sizes = call.kinds or {Kind.CHAT: call.sent}
    tops = list(accumulate(sizes.get(kind, 0) for kind in Kind))
    return {
        "address": address(call.ordinal),
        "title": _said(call),
        "parts": [
            (kind if call.kinds else "unknown", scale.y(top), sizes[kind] * HEIGHT / scale.top)
            for kind, top in zip(Kind, tops, strict=True)
            if sizes.get(kind)
        ],
        "mark": scale.y(tops[-1]) if call.kind == "rebase" else None,
    }


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
    most, step, high = max(sizes, default=1) or 1, WIDTH / len(sizes), OUTLINE_HEIGHT
    # More points than pixels would only make the page larger.
    columns = min(WIDTH, len(sizes))
    picked = (sizes[at * len(sizes) // columns] for at in range(columns))
    pages = [
        (
            "here" if start <= first < start + per_page else "page",
            start,
            min(start + per_page - 1, len(sizes)),
            per_page * step,
            address(start),
        )
        for start in range(1, len(sizes) + 1, per_page)
    ]
    return _draw(
        "outline",
        points=[(at * WIDTH / columns, high - n * high / most) for at, n in enumerate(picked)],
        step=step,
        spans=spans,
        pages=pages if len(sizes) > per_page else (),
        height=high,
    )

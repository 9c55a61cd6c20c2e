"""Colours and axes of charts: neighbours can be told apart in both themes, and an axis ends near
the window."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from foredeck_inspector.book import BookedCall
from foredeck_inspector.charts import Scale
from foredeck_inspector.pages import STATIC

STACK = ("system", "ours", "chat", "results", "folded")
SPANS = ("model", "tool")


def _themes() -> list[dict[str, str]]:
    """The colours of the light and of the dark theme, by name."""
    blocks = re.findall(r":root \{([^}]*)\}", (STATIC / "style.css").read_text())
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks]


def _luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
def test_neighbours_in_a_chart_differ_in_both_themes(theme: int) -> None:
    colours = _themes()[theme]
    for one, other in (*pairwise(STACK), SPANS):
        assert _contrast(colours[one], colours[other]) >= 1.6, (one, other)
    for name in (*STACK, *SPANS):
        assert _contrast(colours[name], colours["raised"]) >= 2.6, name


def _call(sent: int, plain: int, window: int) -> BookedCall:
    counts = sent, plain, 0, [], "", None, None, 0.0
    return BookedCall(1, 1, "m", window, "append", "", *counts)


@pytest.mark.parametrize(
    ("highest", "window", "top"),
    [(150_000, 200_000, 200_000), (90_000, 272_000, 272_000), (60_000, 1_000_000, 60_000)],
)
def test_an_axis_ends_near_the_window(highest: int, window: int, top: int) -> None:
    scale = Scale.of_prompts([_call(highest // 2, highest, window)])
    assert top < scale.top < 1.05 * top
    assert scale.ticks[0] == 0
    assert 2 <= len(scale.ticks) <= 6

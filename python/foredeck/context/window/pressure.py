"""How much of a context window a prompt may take."""

from __future__ import annotations

from foredeck.context.cache.rebase import WaterMarks
from foredeck.context.state.chat import Compactions
from foredeck.context.state.gauge import Gauge
from foredeck.context.state.request import Model

AFTER_REFUSAL = 0.9
"""Of a prompt that was refused as too long, what still counts as the window."""

LEAST_SHARE = 0.25
"""Of the window: a host that lets prompts grow no larger than this would compact all the time."""

STEP_SHARE, MOST_STEP = 0.15, 13_000
"""How far below the host's own limit the high-water mark stays: for an answer and the results of
its calls, which the host counts before it asks for the next prompt. A share of that limit, and at
most the tokens of one result of 50 KB, as long as hosts let any be."""


def usable_window(compactions: Compactions, model: Model | None, gauge: Gauge) -> int | None:
    """The model's window in tokens, less where the provider has refused a smaller prompt.

    None where it is not known.
    """
    if model is None or model.window is None:
        return None
    refused = [
        fields["refused"]["chars"]
        for fields in compactions.values()
        if (fields.get("refused") or {}).get("model") == model.name
    ]
    return min([model.window, *(int(AFTER_REFUSAL * gauge.tokens(chars)) for chars in refused)])


def room(window: int) -> int:
    """The largest prompt: what is left of the window once the answer has its place."""
    return window - min(window // 8, 8192)


def host_limit(window: int, reserve: int) -> int | None:
    """The largest prompt, in tokens, that a host leaves alone which keeps `reserve` of the window
    free. None where that is so little that it had better not compact by itself at all."""
    limit = window - reserve
    return limit if limit >= LEAST_SHARE * window else None


def marks_below(marks: WaterMarks, model: Model | None, window: int | None) -> WaterMarks:
    """The marks for this window, low enough that content goes before the host would compact."""
    if model is None or not (model.window and model.reserve and window):
        return marks
    limit = host_limit(model.window, model.reserve)
    if limit is None:
        return marks
    high = (limit - min(STEP_SHARE * limit, MOST_STEP)) / window
    return marks if high >= marks.high else WaterMarks(high)

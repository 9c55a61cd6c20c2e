"""How much of a context window a prompt may take, in tokens and in characters."""

from __future__ import annotations

from dataclasses import dataclass

from foredeck.context.cache.rebase import WaterMarks
from foredeck.context.state.chat import Branch, Compactions
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

SUMMARY_SHARE = 0.1
"""Of the window, at most, for a summary."""

DOUBT = 1.25
"""An estimate of tokens may be a fifth too high."""

LEAST_CHARS = 400
"""Of a summary, and of a text that is cut, at least."""


@dataclass(frozen=True, slots=True)
class WindowBudget:
    """What the prompt of one call must fit into."""

    window: int | None
    """In tokens."""
    gauge: Gauge
    fixed_chars: int
    """Characters around the messages: system prompt, tools."""
    low_water: float
    summary_chars: int
    time_ms: int
    strips_reasoning: bool = False
    """Whether the wire lets reasoning be left out, once its turn has ended."""
    refused: bool = False
    """Whether the window is what the provider's refusal of a prompt has shown it to be."""

    @property
    def limit(self) -> int:
        """The most characters that may go out."""
        return int(room(self.window or 0) * self.gauge.rate)

    @property
    def bearable(self) -> int:
        """The characters with which a request is still worth a try: counts are estimates, until
        the provider has reported some or refused a prompt."""
        doubt = 1.0 if self.refused or self.gauge.calls else DOUBT
        return int((self.window or 0) * self.gauge.rate * doubt)

    @property
    def goal(self) -> int:
        """The characters down to which chat is compacted, once it has to be."""
        return min(self.limit, int(self.low_water * (self.window or 0) * self.gauge.rate))

    @property
    def summary(self) -> int:
        """The most characters of a summary."""
        share = SUMMARY_SHARE * (self.window or 0) * self.gauge.rate
        return max(LEAST_CHARS, min(self.summary_chars, int(share)))

    def chars(self, branch: Branch) -> int:
        """The characters of the prompt as it is; images count by their tokens."""
        around = self.fixed_chars + branch.plan.chars_said
        return int(self.gauge.prompt(branch.plan, around) * self.gauge.rate)

    def excess(self, branch: Branch) -> int:
        """By how many characters the prompt is too long; negative where it fits."""
        return self.chars(branch) - self.limit


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

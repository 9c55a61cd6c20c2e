"""What a prompt must fit into, in characters: the window less what the answer needs."""

from __future__ import annotations

from dataclasses import dataclass

from foredeck.context.state.branch import Branch
from foredeck.context.state.gauge import Gauge
from foredeck.context.window.pressure import room

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

"""How long the head may be."""

from __future__ import annotations

from dataclasses import dataclass

CHARS_PER_TOKEN = 4
"""Fixed, and not measured: no byte may depend on what a provider has counted so far."""

WINDOW_SHARE = 0.02
"""Of the model's window, at most."""

GROWTH = 2
"""How many times longer it may be, each time that it is written again at no cost."""


@dataclass(frozen=True, slots=True)
class HeadBudget:
    """What the user allows, in tokens. Where `first` is 0 there is no head."""

    first: int = 200
    most: int = 1200

    def next(self, before: int) -> int:
        """The length after `before`, where the session can pay for more; 0: there was none."""
        return min(self.most, GROWTH * before) if before else self.least

    @property
    def least(self) -> int:
        """The length that it may have whether or not the session can pay for more."""
        return min(self.first, self.most)


def chars_of(tokens: int, window: int | None) -> int:
    """The characters that this many tokens are, for a model with this window."""
    if window:
        tokens = min(tokens, int(WINDOW_SHARE * window))
    return tokens * CHARS_PER_TOKEN

"""What an observation saves: the price of going on with what it would stand for. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from foredeck.engine.background.prices import AskingPrices

NOTE_SHARE = 8
"""One token of an observation stands for this many of chat, as expected before it is written."""
FEWEST_CALLS = 10
MOST_CALLS = 200


@dataclass(frozen=True, slots=True)
class Covered:
    """Messages that an observation would stand for. `tokens`: as they are; `sent`: as they go out
    now, what has folded left out; `calls`: how many calls the branch has made."""

    tokens: int
    sent: int
    calls: int


def worth_of(covered: Covered, prices: AskingPrices) -> float:
    """Dollars that the later calls of the session save where an observation stands for these.

    What leaves is read from the provider's cache at each later call. As many calls are expected
    as there have been: whoever has worked for long usually goes on.
    """
    leaving = max(0, covered.sent - covered.tokens // NOTE_SHARE)
    later = min(MOST_CALLS, max(FEWEST_CALLS, covered.calls))
    return leaving * prices.read * later

"""What an observation saves: the price of going on with what it would replace. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from foredeck.engine.background.prices import AskingPrices
from foredeck.observations.observers import NOTE_SHARE

FEWEST_CALLS = 10
MOST_CALLS = 200


@dataclass(frozen=True, slots=True)
class Covered:
    """Messages that an observation would cover. `tokens`: as they are; `sent`: as they go out
    now, what has folded left out; `calls`: how many calls the branch has made."""

    tokens: int
    sent: int
    calls: int


def worth_of(covered: Covered, prices: AskingPrices) -> float:
    """Dollars that the later calls of the session save where an observation covers these.

    What leaves is read from the provider's cache at each later call. As many calls are expected
    as there have been: whoever has worked for long usually goes on.
    """
    leaving = max(0, covered.sent - covered.tokens // NOTE_SHARE)
    return leaving * prices.read * later_calls(covered.calls)


def later_calls(calls: int) -> int:
    """How many more calls a session is taken to have after this many."""
    return min(MOST_CALLS, max(FEWEST_CALLS, calls))

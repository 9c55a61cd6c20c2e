"""What an observation saves: the price of going on with what it would replace. Pure."""

from __future__ import annotations

from foredeck.engine.background.prices import AskingPrices
from foredeck.observations.observers import NOTE_SHARE

FEWEST_CALLS = 10
MOST_CALLS = 200


def worth_of(tokens: int, sent: int, calls: int, prices: AskingPrices) -> float:
    """Dollars that the later calls of a session save where an observation covers messages.

    What leaves is read from the provider's cache at each later call. As many calls are expected
    as there have been: whoever has worked for long usually goes on.

    tokens  of the messages as they are
    sent    of them as they go out now, what has folded left out
    calls   how many the branch has made
    """
    leaving = max(0, sent - tokens // NOTE_SHARE)
    return leaving * prices.read * later_calls(calls)


def later_calls(calls: int) -> int:
    """How many more calls a session is expected to make after this many."""
    return min(MOST_CALLS, max(FEWEST_CALLS, calls))

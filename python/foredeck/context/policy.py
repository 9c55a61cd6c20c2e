"""Which content may leave the prompt. Policies are pure: history in, verdict out.

A policy names messages whose content it no longer wants; it never touches the prompt. The
content leaves at the next rebase (`rebase.py`). Pinned and locked objects, and results that
answer the newest assistant message, are never offered to a policy.

To add one: write a class with `name` and `expired`, and put it into `POLICIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from foredeck.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Holding:
    """A message that shows an object's content and may be folded."""

    index: int
    ordinal: int
    age_in_turns: int
    """0 for the newest user turn."""
    rank: int
    """How many counted results of its turn stand at or after it: 1 for the newest."""
    chars: int


@dataclass(frozen=True, slots=True)
class History:
    """What a policy is given for one call."""

    holdings: Sequence[Holding]
    """Foldable contents, oldest first."""
    turn: int
    time_ms: int
    cold: bool
    """Whether the provider's cache holds nothing of the prompt."""
    state: Mapping[str, Any]
    """What the policy's last verdict on this branch left behind."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a policy decides: messages to fold when that is possible, and state to keep."""

    expired: frozenset[int]
    state: Mapping[str, Any]


class Policy(Protocol):
    """Decides what is collapsible."""

    name: str

    def decide(self, history: History) -> Verdict:
        """The messages whose content may go, given everything that is known."""


class SeedWindow:
    """The window of the seeds: the newest results of each of the newest user turns stay.

    `per_turn` results in each turn (context tools not counted), over `turns` user turns, the
    current one included (seed 1, 6.4; SSOT 4.3). An activation starts its window anew, since
    its content stands where it was activated.
    """

    name = "seed-window"

    def __init__(self, per_turn: int = 5, turns: int = 3) -> None:
        self._per_turn = per_turn
        self._turns = turns

    def decide(self, history: History) -> Verdict:
        """Fold what is older than the window."""
        expired = frozenset(
            holding.index
            for holding in history.holdings
            if holding.age_in_turns >= self._turns or holding.rank > self._per_turn
        )
        return Verdict(expired, {})


class KeepAll:
    """Folds nothing: what plain Pi shows, with handles. For comparisons."""

    name = "keep-all"

    def decide(self, history: History) -> Verdict:
        """Keep everything."""
        del history
        return Verdict(frozenset(), {})


PolicyFactory = Callable[[int, int], Policy]

POLICIES: dict[str, PolicyFactory] = {
    SeedWindow.name: SeedWindow,
    KeepAll.name: lambda _per_turn, _turns: KeepAll(),
}


def make_policy(name: str, *, per_turn: int = 5, turns: int = 3) -> Policy:
    """The policy of that name. Raises `ConfigError` for a name that is not known."""
    if name not in POLICIES:
        raise ConfigError(f"No policy is called {name!r}. Known: {', '.join(sorted(POLICIES))}.")
    return POLICIES[name](per_turn, turns)

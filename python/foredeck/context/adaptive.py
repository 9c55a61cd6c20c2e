"""Policy `adaptive`: content goes when it has not been used for as long as its size is worth.

Found by replaying recorded sessions; the rules and their constants are those of design 2
section 4. `lean` and `careful` are the same rules with other constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from foredeck.context.policy import History, Holding, Loose, Verdict

REFERENCE_TOKENS = 1000
"""The size at which patience is as configured; smaller content is kept longer."""

SMALLEST, LARGEST = 0.3, 2.0
"""Bounds of what size does to patience."""


@dataclass(frozen=True, slots=True)
class Patience:
    """For how many model calls unused content stays, and what shortens that."""

    results: float = 20.0
    edited: float = 60.0
    """Reads and arguments of files that the session edits."""
    arguments: float = 5.0
    idle: float = 0.6
    """Factor for what the newest user turn has not used."""
    cold: float = 0.3
    """Factor while the provider's cache holds nothing, so that folding is free."""
    arguments_fold: bool = True
    thinking_folds: bool = True


class Adaptive:
    """See the module."""

    tracks_uses = True

    def __init__(
        self, patience: Patience | None = None, *, name: str = "adaptive", min_names: int = 2
    ) -> None:
        self.name = name
        self.min_names = min_names
        self._patience = patience or Patience()

    def decide(self, history: History) -> Verdict:
        """What is dead at this call; something that is used again before it went lives on."""
        due = {h.spot for h in history.holdings if self._dead_result(h, history)}
        due |= {p.spot for p in history.pieces if self._dead_piece(p, history)}
        return Verdict(due=frozenset(due))

    def _dead_result(self, holding: Holding, history: History) -> bool:
        base = self._patience.edited if holding.of_edited else self._patience.results
        return self._over(holding.age, holding.chars, base, holding.idle, history.cold)

    def _dead_piece(self, piece: Loose, history: History) -> bool:
        patience = self._patience
        if piece.kind == "thinking":
            return patience.thinking_folds and piece.earlier_turn
        if not patience.arguments_fold:
            return False
        if piece.kind == "old":
            return True
        base = patience.edited if piece.of_edited else patience.arguments
        return self._over(piece.age, piece.chars, base, piece.idle, history.cold)

    def _over(self, age: int, chars: int, base: float, idle: bool, cold: bool) -> bool:
        """Whether content of that size has been unused for longer than it may."""
        size = max(1.0, chars / 4)
        factor = min(LARGEST, max(SMALLEST, math.sqrt(REFERENCE_TOKENS / size)))
        if idle:
            factor *= self._patience.idle
        if cold:
            factor *= self._patience.cold
        return age >= base * factor

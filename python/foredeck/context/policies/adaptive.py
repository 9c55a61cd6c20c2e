"""Policy `adaptive`: content goes when it has not been used for as long as its size is worth.

Found by replaying recorded sessions; docs/experiments.md says what was tried. The constants
are in the configuration. `lean` and `careful` are the same rules with other constants.
"""

from __future__ import annotations

import math

from foredeck.config.prompt import AdaptiveSection
from foredeck.context.policies.policy import (
    ActiveContent,
    FoldablePiece,
    History,
    PolicyDecision,
    UseRule,
)

ROUGH_CHARS_PER_TOKEN = 4
"""Sizes are compared with each other, so that a rough rate will do."""

REFERENCE_TOKENS = 1000
"""The size at which content stays as long as the ages say."""

SHORTEST_FACTOR = 0.3
"""The least that a large size leaves of patience."""


class Adaptive:
    """See the module."""

    def __init__(
        self,
        constants: AdaptiveSection | None = None,
        *,
        name: str = "adaptive",
        min_names: int = 2,
    ) -> None:
        self.name = name
        self._constants = constants or AdaptiveSection()
        self._factors: dict[int, float] = {}
        constants = self._constants
        self.use_rule = UseRule(
            min_names=min_names,
            refresh=True,
            at_work=constants.at_work,
            copies=constants.copy_chars > 0,
            copy_chars=constants.copy_chars,
            runs_after=constants.fold_runs_after,
            edits_after=math.ceil(constants.patience_edits * constants.idle_factor),
            turns_after=constants.fold_turns_after if constants.fold_answers else 0,
            prepared=not constants.fold_prepared,
        )

    def decide(self, history: History) -> PolicyDecision:
        """What has gone unused for too long by now; what is used again before it folds stays."""
        gone = {h.ref for h in history.contents if self._dead_result(h, history)}
        gone |= {p.ref for p in history.pieces if self._dead_piece(p, history)}
        return PolicyDecision(collapsible=frozenset(gone))

    def is_unused(self, piece: FoldablePiece, history: History) -> bool:
        """Whether a text that was said has gone unused for as long as its size is worth."""
        patience = self._constants.patience
        idle, cold = self._idle_factor(piece.idle), self._constants.cold_factor
        return self._over(piece.age, piece.chars, patience, idle, history, cold)

    def _dead_result(self, content: ActiveContent, history: History) -> bool:
        constants = self._constants
        base, idle = constants.patience, self._idle_factor(content.idle)
        if content.of_edited:
            base = constants.patience_edited
        elif content.is_output:
            # Hardly any later edit is of it, and its digest holds the names that are used again.
            idle = constants.idle_output if content.idle else 1.0
        cold = self._cold_factor(content.of_edited)
        return self._over(content.age, content.chars, base, idle, history, cold)

    def _idle_factor(self, idle: bool) -> float:
        """What is left of patience with what the newest user turn has not used."""
        return self._constants.idle_factor if idle else 1.0

    def _cold_factor(self, of_edited: bool) -> float:
        """What a cold cache leaves of patience: all of it with edited files, as the next edits are
        of these."""
        return 1.0 if of_edited else self._constants.cold_factor

    def _dead_piece(self, piece: FoldablePiece, history: History) -> bool:
        constants = self._constants
        if piece.kind == "thinking":
            return piece.earlier_turn
        if piece.kind == "message":
            # Decided for every policy in one place (`pastes.py`).
            return False
        if piece.kind == "answer":
            return constants.fold_answers and self.is_unused(piece, history)
        if piece.kind == "old":
            return True
        base = constants.patience_edits if piece.of_edited else constants.patience_arguments
        idle, cold = self._idle_factor(piece.idle), self._cold_factor(piece.of_edited)
        return self._over(piece.age, piece.chars, base, idle, history, cold)

    def _over(
        self,
        age: int,
        chars: int,
        base: float,
        idle: float,
        history: History,
        cold_factor: float,
    ) -> bool:
        """Whether content of that size has been unused for longer than it may."""
        factor = (self._factors.get(chars) or self._factor(chars)) * idle
        if history.cold:
            factor *= cold_factor
        elif history.closing:
            factor *= self._constants.cold_factor
        return age >= base * factor

    def _factor(self, chars: int) -> float:
        """How many patiences content of that size is worth; kept, since it never changes."""
        size = max(1.0, chars / ROUGH_CHARS_PER_TOKEN)
        factor = math.sqrt(REFERENCE_TOKENS / size)
        factor = min(self._constants.longest_factor, max(SHORTEST_FACTOR, factor))
        self._factors[chars] = factor
        return factor

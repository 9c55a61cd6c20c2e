"""Long messages of the user's fold by one rule, whichever policy decides about the rest."""

from __future__ import annotations

from dataclasses import replace

from foredeck.context.policies.adaptive import Adaptive
from foredeck.context.policies.policy import History, Policy, PolicyDecision, UseRule


class FoldingPastes:
    """A policy that also lets go of long messages of earlier turns.

    `rule` says when such a message has gone unused for as long as its size is worth; `policy`
    decides about everything else, and is given no pieces of messages unless it tracks uses.
    """

    def __init__(self, policy: Policy, rule: Adaptive) -> None:
        self._policy = policy
        self._rule = rule

    @property
    def name(self) -> str:
        """That of the policy: call records name it."""
        return self._policy.name

    @property
    def use_rule(self) -> UseRule:
        """The policy's own, else that of the rule, without bringing reads up to date."""
        return self._policy.use_rule or replace(self._rule.use_rule, refresh=False)

    def decide(self, history: History) -> PolicyDecision:
        """What the policy decides, and the messages that the rule lets go."""
        given = history if self._policy.use_rule else replace(history, pieces=())
        decision = self._policy.decide(given)
        gone = {
            piece.ref
            for piece in history.pieces
            if piece.kind == "message" and self._rule.is_unused(piece, history)
        }
        return replace(decision, collapsible=decision.collapsible | gone) if gone else decision

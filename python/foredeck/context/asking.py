"""Asking the policy: what it is told of a call, and what follows from its verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from foredeck.context.parts import Spot
from foredeck.context.policy import History, Holding, Loose, Policy
from foredeck.context.session import Session
from foredeck.context.uses import Uses
from foredeck.context.wires import Wire

AHEAD_CALLS = 20
"""For how many calls the policy is asked what it will give up if nothing is used meanwhile."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a policy was told, and what it says may go."""

    policy: Policy
    history: History
    due: frozenset[Spot]

    def first_to_go(self) -> int | None:
        """The first message that may be rewritten within the next calls if nothing is used."""
        told = self.history
        later = replace(
            told,
            holdings=[replace(held, age=held.age + AHEAD_CALLS) for held in told.holdings],
            pieces=[replace(piece, age=piece.age + AHEAD_CALLS) for piece in told.pieces],
        )
        verdict = self.policy.decide(later)
        going = {spot.message for spot in verdict.due} | verdict.expired
        return min(going, default=None)


def ask(
    session: Session, policy: Policy, uses: Uses, *, wire: Wire, cold: bool, time_ms: int
) -> Asked:
    """Give the policy the history and mark what it no longer wants; returns what is due.

    Pinned objects and what answers the newest assistant message are never offered to it.
    """
    conversation = session.conversation
    if policy.uses:
        uses.follow(conversation)
    flight = conversation.last_assistant()
    holdings = [
        _holding(session, uses, index, ordinal)
        for index, ordinal in sorted(conversation.live.items())
        if index <= flight and ordinal not in session.sets.pinned
    ]
    pieces = list(_pieces(session, uses, wire, flight)) if policy.uses else []
    state = session.policy_state
    history = History(holdings, conversation.turn, time_ms, cold, state, pieces)
    verdict = policy.decide(history)
    session.policy_state = verdict.state
    for index in verdict.expired:
        conversation.expire(index)
    kept = set(conversation.live.values())
    for holding in holdings:
        if holding.index in verdict.expired and holding.ordinal not in kept:
            session.sets.expire(holding.ordinal)
    return Asked(policy, history, verdict.due)


def _holding(session: Session, uses: Uses, index: int, ordinal: int) -> Holding:
    conversation = session.conversation
    use = conversation.last_use(index)
    spot, again = Spot(index), Spot(use)
    return Holding(
        index,
        ordinal,
        conversation.turn - conversation.items[use].turn,
        conversation.rank_from_end(use),
        conversation.parts[index].chars,
        min(uses.age(spot), uses.age(again)),
        uses.idle(spot) and uses.idle(again),
        uses.is_edited(spot),
    )


def _pieces(session: Session, uses: Uses, wire: Wire, flight: int) -> Iterator[Loose]:
    """Pieces that at least one call has seen and that the wire lets go."""
    conversation = session.conversation
    if wire.between_turns and (not conversation.items or conversation.items[-1].kind != "user"):
        return
    for index, pieces in uses.pieces.items():
        item, part = conversation.items[index], conversation.parts[index]
        if part.form not in ("host", "folded"):
            continue
        for piece in pieces:
            allowed = wire.thinking if piece.kind == "thinking" else wire.arguments
            if index >= flight or piece.slot in part.slots or piece.sealed or not allowed:
                continue
            spot = Spot(index, piece.slot)
            yield Loose(
                spot,
                piece.kind,
                len(piece.text),
                uses.age(spot),
                uses.idle(spot),
                uses.is_edited(spot),
                item.turn < conversation.turn,
            )

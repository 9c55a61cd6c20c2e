"""Runs the policy for a call, and applies its decision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from foredeck.context.plan.ops import PieceRef
from foredeck.context.plan.plan import Plan
from foredeck.context.plan.wires import Wire
from foredeck.context.policies.policy import ActiveContent, FoldablePiece, History, Policy
from foredeck.context.policies.uses import Uses
from foredeck.context.rebase import precedes_bound_turn
from foredeck.context.state.chat import Branch

AHEAD_CALLS = 20
"""Calls ahead for which the policy is asked."""


@dataclass(frozen=True, slots=True)
class PolicyRun:
    policy: Policy
    history: History
    foldable: frozenset[PieceRef]
    """What may go now."""

    def first_to_go(self) -> int | None:
        """The first message that may be rewritten within the next calls."""
        history = self.history
        later = replace(
            history,
            contents=[
                content._replace(age=content.age + AHEAD_CALLS) for content in history.contents
            ],
            pieces=[piece._replace(age=piece.age + AHEAD_CALLS) for piece in history.pieces],
        )
        decision = self.policy.decide(later)
        going = {ref.message for ref in decision.foldable} | decision.released
        return min(going, default=None)


def run_policy(
    branch: Branch,
    policy: Policy,
    uses: Uses,
    *,
    wire: Wire,
    cold: bool,
    time_ms: int,
) -> PolicyRun:
    """Runs the policy, and releases what it gives up."""
    plan = branch.plan
    if policy.use_rule:
        uses.follow(plan)
    flight = plan.last_assistant()
    floor = newest_from(plan, policy.use_rule.newest if policy.use_rule else 0)
    contents = [
        content
        for content in _active_contents(branch, uses, flight, cold=cold)
        if content.message < floor
    ]
    pieces = list(_pieces(branch, uses, wire, flight)) if policy.use_rule else []
    state = branch.policy_state
    history = History(
        contents,
        plan.turn,
        time_ms,
        cold,
        state,
        closing=precedes_bound_turn(plan),
        pieces=pieces,
    )
    decision = policy.decide(history)
    branch.policy_state = decision.state
    # Only what was offered: a policy must not release what is pinned or answers the newest message.
    for index in sorted({content.message for content in contents} & decision.released):
        branch.release(index)
    return PolicyRun(policy, history, decision.foldable)


def newest_from(plan: Plan, count: int) -> int:
    first = len(plan)
    while first and count:
        first -= 1
        count -= plan.items[first].kind == "result"
    return first


def _active_contents(
    branch: Branch, uses: Uses, flight: int, *, cold: bool
) -> Iterator[ActiveContent]:
    # What answers the newest assistant message has not been seen by the model yet.
    plan, pinned = branch.plan, branch.sets.pins
    items, counted = plan.items, plan.results_in_turn
    turn, last_use = plan.turn, plan.referred_at.get
    for index, ordinal in sorted(branch.kept.items()):
        if index > flight or ordinal in pinned or items[index].kind != "result":
            continue
        use = last_use(index, index)
        ref, age, idle, of_edited = uses.state(index, cold=cold)
        if use != index:
            _, again, unused, _ = uses.state(use, cold=cold)
            age, idle = min(age, again), idle and unused
        item = items[use]
        age_in_turns, recency_rank = (
            turn - item.turn,
            counted.get(item.turn, 0) - item.results_before,
        )
        chars = plan.chars[index]
        tool = items[index].tool
        yield ActiveContent(
            ref, ordinal, age_in_turns, recency_rank, chars, tool, age, idle, of_edited
        )


def _pieces(branch: Branch, uses: Uses, wire: Wire, flight: int) -> Iterator[FoldablePiece]:
    plan, pinned = branch.plan, branch.sets.pins
    if wire.between_turns and (not plan.items or plan.items[-1].kind != "user"):
        return
    for ref, piece in uses.foldable.items():
        item = plan.items[ref.message]
        earlier = item.turn < plan.turn
        if piece.kind == "thinking":
            allowed = wire.thinking
        else:
            allowed = wire.arguments or item.kind == "user"
        if piece.kind in ("message", "answer") and not earlier:
            continue
        op, use = plan.ops[ref.message], plan.last_use(ref.message)
        if use > flight or op.subject in pinned:
            continue
        if allowed and ref.message < flight:
            _, age, idle, of_edited = uses.state(*ref)
            if use != ref.message:
                _, again, unused, _ = uses.state(use)
                age, idle = min(age, again), idle and unused
            chars = len(piece.text)
            yield FoldablePiece(ref, piece.kind, chars, age, idle, of_edited, earlier)

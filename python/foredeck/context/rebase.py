"""When the prompt may be rewritten, from where, and when that pays. Pure; in tokens of uncached
input.

Released content has a *carrying cost* at every call, removing it a *rewrite cost* once: a ski
rental problem.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from foredeck.config import RebaseSection
from foredeck.context.messages.items import Item
from foredeck.context.plan.ops import REASONING
from foredeck.context.plan.plan import Plan
from foredeck.model.call_values import (
    DEFAULT_OUTPUT,
    DEFAULT_READ,
    DEFAULT_WRITE,
    BranchCost,
    Decision,
)

RebaseReason = Literal[
    "cold",
    "model",
    "history",
    "system",
    "layout",
    "withdrawn",
    "high-water",
    "tier",
    "pays",
    "look-back",
    "no-cache",
]
"""`cold` to `withdrawn`: nothing that was sent is cached."""


_HIGH, _LOW = 0.85, 0.60


@dataclass(frozen=True, slots=True)
class WaterMarks:
    """Shares of the window: above `high` content goes, down to `low`."""

    high: float = _HIGH

    @property
    def low(self) -> float:
        """Far enough below `high` for the next results."""
        return _LOW * self.high / _HIGH


def first_mutable(plan: Plan, items: Sequence[Item] | None = None) -> int:
    """The first message whose bytes may change: sealed reasoning of the current turn may bind those
    before it.

    `items`: a longer list than the plan's.
    """
    ops, items = plan.ops, plan.items if items is None else items
    if plan.turn_ends:
        return 0
    # By Anthropic's documentation ("Thinking", "Preserved thinking") a tool loop is one turn of the
    # assistant: in it reasoning has to come back as it was issued, and a user message that holds
    # more than tool results ends it. Newer models also compare what precedes every block that comes
    # back, in whichever turn; those may be left out, all from some message on, once the turn has
    # ended (`strip_reasoning` in `rewriting/folding.py`).
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if item.kind == "user":
            return 0
        left_out = index < len(ops) and REASONING in ops[index].folded
        if plan.seals.binds(item) and not left_out:
            return index + 1
    return 0


def may_change(plan: Plan, indexes: Iterable[int]) -> set[int]:
    """Those messages whose bytes may change in this call."""
    free = first_mutable(plan)
    return {index for index in indexes if index >= free and not is_immutable(plan, index)}


def is_immutable(plan: Plan, index: int) -> bool:
    """Whether the message has sealed reasoning of the current turn: it and its calls stay."""
    item = plan.items[index]
    if plan.turn_ends or not item.signed or item.unsent or item.turn != plan.turn:
        return False
    return REASONING not in plan.ops[index].folded


def precedes_bound_turn(plan: Plan) -> bool:
    """Whether a turn begins whose sealed reasoning will bind what precedes it, as that of the turn
    before did: the last chance to fold until it ends."""
    items = plan.items
    if not items or items[-1].kind != "user":
        return False
    for item in reversed(items[:-1]):
        if plan.seals.binds(item):
            return True
        if item.kind == "user":
            return False
    return False


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices relative to input; the defaults serve unknown models."""

    read: float = DEFAULT_READ
    write: float = DEFAULT_WRITE
    known: bool = False
    cached: bool = True
    """If false, cost is tokens and folding is free."""
    output: float = DEFAULT_OUTPUT
    """Of a generated token."""

    def cost(self, cached: float, written: float) -> float:
        """Price of so many tokens."""
        return cached * self.read + written * self.write

    @property
    def rewrite(self) -> float:
        """Extra price of a written token over a cached one."""
        return max(0.0, self.write - self.read)


FEWEST_CALLS, MOST_CALLS = 10, 200


def later_calls(calls: int) -> int:
    """Expects as many further calls as so far, since long sessions go on."""
    return min(MOST_CALLS, max(FEWEST_CALLS, calls))


def prices_of(cost: Mapping[str, Any] | None) -> Prices:
    """Prices from a host's model record: `input`, `cacheRead` and `cacheWrite` in one unit.

    Without a write price writing costs as input; zero for both means no cache.
    """
    fields = cost or {}
    base, read, write = (_number(fields.get(k)) for k in ("input", "cacheRead", "cacheWrite"))
    if base <= 0 or (read <= 0 and ("cacheRead" not in fields or write > 0)):
        return Prices()
    output = _number(fields.get("output")) / base or Prices().output
    if read <= 0 or min(read, write) >= base:
        return Prices(1.0, 1.0, known=True, cached=False, output=output)
    return Prices(read / base, write / base if write > 0 else 1.0, known=True, output=output)


BOUND_TURN_FACTOR = 0.5
"""Multiplies `carrying_factor` before a bound turn."""


def can_afford(rebase: RebaseSection, branch: BranchCost, rewrite_cost: float) -> bool:
    """Whether the session can afford this; free ones pass."""
    return rewrite_cost <= 0 or branch.actual + rewrite_cost <= (1 + rebase.guard) * branch.baseline


@dataclass(frozen=True, slots=True)
class CandidateMessage:
    """Content that may go, with its saving and cost so far."""

    index: int
    saving: float
    carrying_cost: float
    suffix: float
    """Tokens to cache again if the message changes."""
    reasoning: float = 0.0
    """Reasoning tokens lost if the message changes."""


@dataclass(frozen=True, slots=True)
class RebaseOffer:
    """A rebase that pays."""

    index: int
    carrying_cost: float
    rewrite_cost: float
    reasoning_cost: float
    saving: float
    factor: float | None = None
    """As in `Decision`."""

    def explain(self, decision: Decision) -> Decision:
        """The decision with these figures."""
        return decision._replace(
            carrying_cost=round(self.carrying_cost),
            rewrite_cost=round(self.rewrite_cost),
            reasoning_cost=round(self.reasoning_cost) or None,
            factor=self.factor,
        )


def best_rebase(
    messages: Sequence[CandidateMessage],
    prices: Prices,
    rebase: RebaseSection,
    ledger: BranchCost,
    factor: float = 1.0,
) -> RebaseOffer | None:
    """The earliest position where a rebase pays.

    `messages` are in order; `ledger` includes this call; `factor` multiplies `carrying_factor`.
    """
    carrying_cost = saving = cached = 0.0
    offer: RebaseOffer | None = None
    # From the back, so that each step adds one message to those that go; the last offer that
    # holds begins earliest.
    for message in reversed(messages):
        carrying_cost += message.carrying_cost
        saving += message.saving
        cached += message.saving if message.suffix else 0.0
        # What leaves the prompt need not be written again.
        rewrite_cost = prices.rewrite * max(0.0, message.suffix - cached)
        reasoning_cost = rebase.reasoning * prices.output * message.reasoning
        price = rebase.carrying_factor * (rewrite_cost + reasoning_cost)
        if carrying_cost >= factor * price and can_afford(rebase, ledger, rewrite_cost):
            decisive = factor if carrying_cost < price else None
            costs = carrying_cost, rewrite_cost, reasoning_cost
            offer = RebaseOffer(message.index, *costs, saving, decisive)
    return offer


def calls_until(
    messages: Sequence[CandidateMessage], prices: Prices, rebase: RebaseSection
) -> int | None:
    """Fewest calls until a rebase pays; None if nothing may go, or reading is free."""
    carrying_cost = saving = 0.0
    soonest: int | None = None
    for message in reversed(messages):
        carrying_cost += message.carrying_cost
        saving += message.saving
        rewrite_cost = prices.rewrite * max(0.0, message.suffix - saving)
        rewrite_cost += rebase.reasoning * prices.output * message.reasoning
        missing = rebase.carrying_factor * rewrite_cost - carrying_cost
        if prices.read * saving <= 0:
            continue
        calls = max(1, math.ceil(missing / (prices.read * saving)))
        soonest = calls if soonest is None else min(soonest, calls)
    return soonest


def _number(value: Any) -> float:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain else 0.0

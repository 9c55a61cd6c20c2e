"""When the prompt may be rewritten, from where, and when that pays.

Between rebases not a byte of what was sent changes. A rebase is free while the cache is cold, and
it must come at the high-water mark. Otherwise it comes when it pays. Content that is no longer kept
has a *carrying cost*: the read price, at every call, of the tokens that it would save. Taking it
out has a *rewrite cost*: what comes after it was cached and must be written again. This is the ski
rental problem: the time to buy is when the rent has come to a multiple of the price.

Costs are in tokens of uncached input. Nothing here changes anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from foredeck.context.messages.items import Item
from foredeck.context.plan.ops import REASONING
from foredeck.context.plan.plan import Plan
from foredeck.model.call_values import BranchCost, Decision
from foredeck.model.own_tools import FACILITY_TOOLS, definition_chars

RebaseReason = Literal[
    "cold",
    "model",
    "history",
    "system",
    "layout",
    "withdrawn",
    "high-water",
    "pays",
    "look-back",
    "no-cache",
]
"""`cold` to `withdrawn`: the provider's cache holds nothing of what was sent before."""

DEFAULT_TTL_S = 300


_HIGH, _LOW = 0.85, 0.60


@dataclass(frozen=True, slots=True)
class WaterMarks:
    """Shares of the context window: above `high` content must go, down to `low`."""

    high: float = _HIGH

    @property
    def low(self) -> float:
        """So far below `high` that the prompt does not pass that again at the next results."""
        return _LOW * self.high / _HIGH


def first_mutable(plan: Plan, items: Sequence[Item] | None = None) -> int:
    """The first message from which on bytes may change at this call. `items`: a list that goes on
    from what the plan holds, where that is not all of it.

    Signed or encrypted reasoning of the turn under way may be bound to the bytes before it
    (`messages/wires.py`). Then none of it may follow the first changed byte, unless the newest
    message is the user's, or a message of ours ends the turn (`Rebase` in `calls/deciding.py`).
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
    """Those of these messages whose own bytes may change at this call."""
    free = first_mutable(plan)
    return {index for index in indexes if index >= free and not is_immutable(plan, index)}


def is_immutable(plan: Plan, index: int) -> bool:
    """Whether a message holds sealed reasoning of the turn under way: that, and the calls that it
    led to, come back as they came, even where what precedes them may change."""
    item = plan.items[index]
    if plan.turn_ends or not item.signed or item.unsent or item.turn != plan.turn:
        return False
    return REASONING not in plan.ops[index].folded


def precedes_bound_turn(plan: Plan) -> bool:
    """Whether this call is the last for a while at which everything may change: the newest message
    is the user's, and the turn before it held bound reasoning, as the one that begins will."""
    items = plan.items
    if not items or items[-1].kind != "user":
        return False
    for item in reversed(items[:-1]):
        if plan.seals.binds(item):
            return True
        if item.kind == "user":
            return False
    return False


def declared_chars(tools: Iterable[Any], otherwise: int) -> int:
    """What ours among a host's tool definitions add; `otherwise` where it has sent none."""
    names = {tool.get("name") for tool in tools if isinstance(tool, Mapping)}
    if not names:
        return otherwise
    return definition_chars(
        *(facility for facility, own in FACILITY_TOOLS.items() if names.issuperset(own))
    )


@dataclass(frozen=True, slots=True)
class Prices:
    """Of a token read from the provider's cache and of one written to it, relative to input.

    The defaults are those of a provider that charges for writing: dear enough that a model whose
    prices are not known is not rewritten too often.
    """

    read: float = 0.1
    write: float = 1.25
    known: bool = False
    cached: bool = True
    """Whether the provider keeps prompts at all. Where it does not, cost is tokens, and folding
    is free."""
    output: float = 5.0
    """Of a generated token."""

    def cost(self, cached: float, written: float) -> float:
        """The price of so many tokens found in the cache, and written to it."""
        return cached * self.read + written * self.write

    @property
    def rewrite(self) -> float:
        """What a token costs more when it is written instead of read."""
        return max(0.0, self.write - self.read)


def prices_of(cost: Mapping[str, Any] | None) -> Prices:
    """From a host's model record: `input`, `cacheRead` and `cacheWrite`, in any one unit.

    A model without a price of writing writes at the price of input. One that names 0 for reading
    and for writing has no cache. Of a model without prices nothing is known: the defaults hold.
    """
    given = cost or {}
    base, read, write = (_number(given.get(k)) for k in ("input", "cacheRead", "cacheWrite"))
    if base <= 0 or (read <= 0 and ("cacheRead" not in given or write > 0)):
        return Prices()
    output = _number(given.get("output")) / base or Prices().output
    if read <= 0 or min(read, write) >= base:
        return Prices(1.0, 1.0, known=True, cached=False, output=output)
    return Prices(read / base, write / base if write > 0 else 1.0, known=True, output=output)


@dataclass(frozen=True, slots=True)
class RebaseThresholds:
    """What the rule is tuned by."""

    factor: float = 1.0
    """How many times the rewrite cost the carrying cost must have reached."""
    guard: float = 0.02
    """By what share of its cost with nothing folded a session may ever be dearer, the
    definitions of our tools counted."""
    closing: float = 0.5
    """Factor on `factor` at the last call for a while at which everything may change."""
    reasoning: float = 1.0
    """What a token of reasoning that is lost is worth, as a share of what it cost to generate."""
    old_reasoning: float = 0.1
    """What of that is left of reasoning that is not of the newest calls."""
    gap: int = 10
    """Calls from one rebase to the next that is made because it pays, or that loses reasoning."""

    def allow(self, branch: BranchCost, rewrite_cost: float) -> bool:
        """Whether the session could still pay so much more; what costs nothing always goes."""
        return (
            rewrite_cost <= 0 or branch.actual + rewrite_cost <= (1 + self.guard) * branch.baseline
        )


@dataclass(frozen=True, slots=True)
class CandidateMessage:
    """Content that may go: where it is, what it would save, what it has cost so far."""

    index: int
    saving: float
    carrying_cost: float
    suffix: float
    """Tokens between the prefix that stays cached if its message changes, and the one that would
    be found if nothing did; 0 where it is not cached anyway."""
    reasoning: float = 0.0
    """Tokens of reasoning that the model would lose if its message changes."""


@dataclass(frozen=True, slots=True)
class RebaseOffer:
    """A rebase that pays: from which message, and why."""

    index: int
    carrying_cost: float
    rewrite_cost: float
    saving: float

    def explain(self, decision: Decision) -> Decision:
        """The decision with the figures that it was made by."""
        return decision._replace(
            carrying_cost=round(self.carrying_cost),
            rewrite_cost=round(self.rewrite_cost),
            saves=round(self.saving),
        )


def best_rebase(
    messages: Sequence[CandidateMessage],
    prices: Prices,
    thresholds: RebaseThresholds,
    ledger: BranchCost,
) -> RebaseOffer | None:
    """The earliest position from which a rebase pays, None where there is none.

    `messages` are in the order of their messages; everything from the position on goes. `ledger`
    includes the call at hand as it would be without a rebase.
    """
    carrying_cost = saving = cached = 0.0
    found: RebaseOffer | None = None
    # From the back, so that each step adds one message to those that go; the last offer that
    # holds begins earliest.
    for message in reversed(messages):
        carrying_cost += message.carrying_cost
        saving += message.saving
        cached += message.saving if message.suffix else 0.0
        # What leaves the prompt need not be written again.
        rewrite_cost = prices.rewrite * max(0.0, message.suffix - cached)
        lost = thresholds.reasoning * prices.output * message.reasoning
        pays = carrying_cost >= thresholds.factor * (rewrite_cost + lost)
        if pays and thresholds.allow(ledger, rewrite_cost):
            found = RebaseOffer(message.index, carrying_cost, rewrite_cost, saving)
    return found


def calls_until(
    messages: Sequence[CandidateMessage], prices: Prices, thresholds: RebaseThresholds
) -> int | None:
    """In how many calls at the earliest a rebase pays by the carrying cost of what may go now.

    More that may go by then can make it sooner, the guard later. None where nothing may go, or
    reading costs nothing.
    """
    carrying_cost = saving = 0.0
    soonest: int | None = None
    for message in reversed(messages):
        carrying_cost += message.carrying_cost
        saving += message.saving
        rewrite_cost = prices.rewrite * max(0.0, message.suffix - saving)
        rewrite_cost += thresholds.reasoning * prices.output * message.reasoning
        missing = thresholds.factor * rewrite_cost - carrying_cost
        if prices.read * saving <= 0:
            continue
        calls = max(1, math.ceil(missing / (prices.read * saving)))
        soonest = calls if soonest is None else min(soonest, calls)
    return soonest


def _number(value: Any) -> float:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain else 0.0

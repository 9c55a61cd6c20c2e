"""When a rebase pays: rent against premium, with a guard. Pure functions.

Amounts are in tokens of uncached input. Content that is no longer kept costs *rent*: the
read price, at every call, of the tokens that it would save. Taking it out costs a *premium*: what
comes after it was cached and must be written again. As with hired skis, the time to pay is when
the rent has reached a multiple of the premium.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foredeck.model.call_values import BranchCost, Decision
from foredeck.model.own_tools import FACILITY_TOOLS, definition_chars


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

    @property
    def premium(self) -> float:
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
    if read <= 0 or min(read, write) >= base:
        return Prices(1.0, 1.0, known=True, cached=False)
    return Prices(read / base, write / base if write > 0 else 1.0, known=True)


@dataclass(frozen=True, slots=True)
class RebaseThresholds:
    """What the rule is tuned by."""

    factor: float = 1.0
    """How many times the premium the rent must have reached."""
    guard: float = 0.02
    """By what share of its cost with nothing folded a session may ever be dearer, the
    definitions of our tools counted."""
    closing: float = 0.5
    """Factor on `factor` at the last call for a while at which everything may change."""


@dataclass(frozen=True, slots=True)
class CandidateMessage:
    """Content that may go: where it is, what it would save, what it has cost so far."""

    index: int
    saving: float
    rent: float
    suffix: float
    """Tokens between the prefix that stays cached if its message changes, and the one that would
    be found if nothing did; 0 where it is not cached anyway."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What the branch has cost so far, and what it would have with nothing folded."""

    plain: float = 0.0
    ours: float = 0.0
    left: int = 0
    """Characters of the chat that the host would have compacted away by now."""

    def after(self, prices: Prices, plain: PromptBill, ours: PromptBill) -> Ledger:
        """The ledger after one more call; rounded, so that a stored one is the same."""
        return Ledger(
            round(self.plain + plain.cost(prices), 1),
            round(self.ours + ours.cost(prices), 1),
            self.left,
        )

    def allows(self, premium: float, thresholds: RebaseThresholds) -> bool:
        """Whether the session could still pay so much more; what costs nothing always goes."""
        return premium <= 0 or self.ours + premium <= (1 + thresholds.guard) * self.plain

    @property
    def total(self) -> BranchCost:
        """As a call record keeps it."""
        return BranchCost(self.plain, self.ours, self.left)


@dataclass(frozen=True, slots=True)
class PromptBill:
    """Tokens of one prompt: found in the cache, and written to it."""

    cached: float
    written: float

    def cost(self, prices: Prices) -> float:
        """Its price."""
        return self.cached * prices.read + self.written * prices.write


@dataclass(frozen=True, slots=True)
class RebaseOffer:
    """A rebase that pays: from which message, and why."""

    index: int
    rent: float
    premium: float
    saving: float

    def explain(self, decision: Decision) -> Decision:
        """The decision with the figures that it was made by."""
        rent, premium, saves = round(self.rent), round(self.premium), round(self.saving)
        return decision._replace(rent=rent, premium=premium, saves=saves)


def best_rebase(
    messages: Sequence[CandidateMessage],
    prices: Prices,
    thresholds: RebaseThresholds,
    ledger: Ledger,
) -> RebaseOffer | None:
    """The earliest position from which a rebase pays, None where there is none.

    `messages` are in the order of their messages; everything from the position on goes. `ledger`
    includes the call at hand as it would be without a rebase.
    """
    rent = saving = cached = 0.0
    found: RebaseOffer | None = None
    # From the back, so that each step adds one message to those that go; the last offer that
    # holds begins earliest.
    for message in reversed(messages):
        rent += message.rent
        saving += message.saving
        cached += message.saving if message.suffix else 0.0
        # What leaves the prompt need not be written again.
        premium = prices.premium * max(0.0, message.suffix - cached)
        if rent >= thresholds.factor * premium and ledger.allows(premium, thresholds):
            found = RebaseOffer(message.index, rent, premium, saving)
    return found


def calls_until(
    messages: Sequence[CandidateMessage], prices: Prices, thresholds: RebaseThresholds
) -> int | None:
    """In how many calls at the earliest a rebase pays by the rent of what may go now.

    More that may go by then can make it sooner, the guard later. None where nothing may go, or
    reading costs nothing.
    """
    rent = saving = 0.0
    soonest: int | None = None
    for message in reversed(messages):
        rent += message.rent
        saving += message.saving
        missing = thresholds.factor * prices.premium * max(0.0, message.suffix - saving) - rent
        if prices.read * saving <= 0:
            continue
        calls = max(1, math.ceil(missing / (prices.read * saving)))
        soonest = calls if soonest is None else min(soonest, calls)
    return soonest


def _number(value: Any) -> float:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain else 0.0

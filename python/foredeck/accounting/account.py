"""The account of one session: what each call cost, with foredeck and without, and every lost hit.

Costs are in uncached input tokens at the prices of the model in use. What the provider reported
is shown beside what the rule of its cache predicts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any, Literal

from foredeck.accounting.figure import CostFigure
from foredeck.context.messages.items import PromptUsage
from foredeck.model.lost_reasoning import LostSum

Reported = Literal["ours", "plain"]


@dataclass(frozen=True, slots=True)
class AccountingMethod:
    """How a session is charged. What is None is taken from the session's records."""

    cache: str | None = None
    ttl_s: float | None = None
    rate: float | None = None
    """Characters per token."""
    reported: Reported = "ours"
    """The prompts that the provider's figures are about: ours, or plain Pi's."""


@dataclass(slots=True)
class Charge:
    """Tokens of one prompt, and their cost."""

    tokens: float = 0.0
    cached: float = 0.0
    cost: float = 0.0


@dataclass(slots=True)
class AccountLine:
    """One call of the account."""

    call: int
    time_ms: int
    model: str
    kind: str
    reason: str
    plain: Charge
    ours: Charge
    lost: dict[str, int]
    """Tokens that the call before had left in the cache and this one did not find, by cause."""
    price: float
    """Price of a million uncached input tokens, in the host's currency; 0 where it is unknown."""
    reasoning: LostSum
    """What the model lacks since this call."""
    foreseen: int | None = None
    """Tokens that the engine expected at the time to be read from the cache."""
    reported: PromptUsage | None = None

    def to_json(self) -> dict[str, Any]:
        """The call as `--json` prints it."""
        usage = None if self.reported is None else self.reported._asdict()
        lost = self.reasoning._asdict()
        return {**_rounded(asdict(self)), "reasoning": lost, "reported": usage}


@dataclass(slots=True)
class RebaseBalance:
    """What a rebase cost, and what it has saved since."""

    call: int
    reason: str
    lost: int
    """Tokens that were in the cache and were not found again because of it."""
    saved: int
    """Tokens by which the prompt became shorter."""
    reasoning: int
    """Tokens of reasoning that the model lacks because of it."""
    paid: float
    """What it cost to write the remaining lost tokens again instead of reading them."""
    back: float
    """What the shorter prompts have saved since, this call included."""
    weighed: dict[str, float]
    """The figures that the decision weighed, as recorded: rent, premium and so on."""


@dataclass(slots=True)
class Account:
    """All calls of a session, and its rebases."""

    cache: str
    ttl_s: float
    rate: float
    reports: int
    """How many reports of the provider `rate` rests on; with 0 it is an estimate."""
    reported: Reported = "ours"
    """The prompts that the provider's figures are about."""
    figure: CostFigure = field(default_factory=CostFigure)
    """What all of it has cost, as every screen says it."""
    lines: list[AccountLine] = field(default_factory=list)
    rebases: list[RebaseBalance] = field(default_factory=list)

    @property
    def reasoning(self) -> LostSum:
        """What the model lacks since all of these calls."""
        return reduce(LostSum.plus, (line.reasoning for line in self.lines), LostSum())

    @property
    def plain_cost(self) -> float:
        """What plain Pi would have cost, in uncached input tokens."""
        return sum(line.plain.cost for line in self.lines)

    @property
    def cost(self) -> float:
        """What the session has cost."""
        return sum(line.ours.cost for line in self.lines)

    @property
    def cached(self) -> float:
        """Tokens that were read from the cache."""
        return sum(line.ours.cached for line in self.lines)

    @property
    def uncached(self) -> float:
        """Tokens that were not."""
        return sum(line.ours.tokens - line.ours.cached for line in self.lines)

    @property
    def compared(self) -> int:
        """How many calls the provider has reported."""
        return sum(line.reported is not None for line in self.lines)

    def comparison(self) -> list[tuple[str, float, float]]:
        """Rows of name, predicted and reported tokens, over the calls that were reported."""
        reported = [(line, line.reported) for line in self.lines if line.reported is not None]
        if not reported:
            return []
        charges = [line.ours if self.reported == "ours" else line.plain for line, _ in reported]
        prompts = sum(charge.tokens for charge in charges)
        cached = sum(charge.cached for charge in charges)
        rows: list[tuple[str, float, float]] = [
            ("prompts", prompts, sum(usage.total for _, usage in reported)),
            ("read from the cache", cached, sum(usage.read for _, usage in reported)),
        ]
        foreseen = [(f, u) for line, u in reported if (f := line.foreseen) is not None]
        if self.reported == "ours" and foreseen:
            read = sum(usage.read for _, usage in foreseen)
            rows.append(("the same, as foreseen at each call", sum(f for f, _ in foreseen), read))
        return rows

    def to_json(self) -> dict[str, Any]:
        """The account as `--json` prints it; tokens rounded."""
        total = {
            "plain_cost": round(self.plain_cost),
            "cost": round(self.cost),
            "cached_tokens": round(self.cached),
            "uncached_tokens": round(self.uncached),
            "lost_tokens": dict(self.lost.most_common()),
            "lost_reasoning": self.reasoning._asdict(),
            "reported": {
                name: {"predicted": round(predicted), "reported": round(reported)}
                for name, predicted, reported in self.comparison()
            },
        }
        return {
            "cache": self.cache,
            "ttl_s": self.ttl_s,
            "chars_per_token": self.rate,
            "reported_calls": self.reports,
            "reported_of": self.reported,
            "calls": [line.to_json() for line in self.lines],
            "rebases": [_rounded(asdict(rebase)) for rebase in self.rebases],
            "total": total,
        }

    @property
    def lost(self) -> Counter[str]:
        """All lost hits by cause, in tokens."""
        total: Counter[str] = Counter()
        for line in self.lines:
            total.update(line.lost)
        return total


def _rounded(value: Any) -> Any:
    """The value with whole numbers: a fraction of a token means nothing."""
    if isinstance(value, dict):
        # A price is in money, of which fractions count.
        return {k: v if k == "price" else _rounded(v) for k, v in value.items()}
    return round(value) if isinstance(value, float) else value

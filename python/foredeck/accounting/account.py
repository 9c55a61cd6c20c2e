"""The account of one session: the cost of each call, and every lost hit, in uncached input tokens
at the model's prices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any, Literal

from foredeck.accounting.figure import CostFigure
from foredeck.context.messages.items import PromptUsage
from foredeck.model.call_values import DecisionKind
from foredeck.model.calls import LostSum

Reported = Literal["ours", "plain"]


@dataclass(frozen=True, slots=True)
class AccountingMethod:
    """How a session is charged; what is None comes from its records."""

    cache: str | None = None
    ttl_s: float | None = None
    rate: float | None = None
    """Characters per token."""
    reported: Reported = "ours"
    """Whose prompts the provider's figures are about: ours, or plain Pi's."""


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
    kind: DecisionKind
    reason: str
    plain: Charge
    ours: Charge
    lost: dict[str, int]
    """Tokens that were in the cache and had to be sent again, by cause."""
    price: float
    """Of a million uncached input tokens, in the host's currency; 0: unknown."""
    reasoning: LostSum
    """What the model lacks since this call."""
    foreseen: int | None = None
    """Tokens that the engine expected to be read from the cache."""
    reported: PromptUsage | None = None

    def to_json(self) -> dict[str, Any]:
        """The call as `--json` prints it."""
        usage = None if self.reported is None else self.reported._asdict()
        lost = self.reasoning._asdict()
        return {**_rounded(asdict(self)), "reasoning": lost, "reported": usage}


@dataclass(slots=True)
class Money:
    paid: float = 0.0
    back: float = 0.0


@dataclass(slots=True)
class RebaseBalance:
    """What a rebase cost, and what it has saved since."""

    call: int
    reason: str
    lost: int
    """Cached tokens that had to be sent again because of it."""
    saved: int
    """Tokens by which the prompt became shorter."""
    reasoning: int
    """Tokens of reasoning lost by it."""
    paid: float
    """Writing the lost tokens again instead of reading them."""
    back: float
    """Savings of the shorter prompts since, this call included."""
    money: Money
    """In the host's currency, each call at its model's price."""
    weighed: dict[str, float]
    """What `context.state.gauge.weighed` says of the decision."""


@dataclass(slots=True)
class Account:
    """All calls of a session, and its rebases."""

    cache: str
    ttl_s: float
    rate: float
    reports: int
    """Reports behind `rate`; 0: an estimate."""
    reported: Reported = "ours"
    """The prompts that the provider's figures are about."""
    figure: CostFigure = field(default_factory=CostFigure)
    """The figure that every screen shows."""
    lines: list[AccountLine] = field(default_factory=list)
    rebases: list[RebaseBalance] = field(default_factory=list)

    @property
    def reasoning(self) -> LostSum:
        """What the model lacks since all of these calls."""
        return reduce(LostSum.plus, (line.reasoning for line in self.lines), LostSum())

    @property
    def plain_cost(self) -> float:
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
        """Name, predicted and reported tokens, over the calls that were reported."""
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


def runs_of(rebases: Iterable[RebaseBalance]) -> list[list[RebaseBalance]]:
    """Rebases, those at calls in a row together."""
    runs: list[list[RebaseBalance]] = []
    for rebase in rebases:
        if runs and runs[-1][-1].call + 1 == rebase.call:
            runs[-1].append(rebase)
        else:
            runs.append([rebase])
    return runs


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        # Of money and factors fractions count.
        return {
            k: v if k in ("price", "money", "factor") else _rounded(v) for k, v in value.items()
        }
    return round(value) if isinstance(value, float) else value

"""What an answer cost, at the prices of its model."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from foredeck.model.call_values import tier_of

Cost = Mapping[str, Any]

COUNTED = ("input", "output", "cacheRead", "cacheWrite")


def rates_at(cost: Cost, tokens: int) -> Cost:
    return tier_of(cost.get("tiers") or (), tokens, itemgetter("inputTokensAbove")) or cost


def dollars(cost: Cost, usage: Mapping[str, int]) -> float:
    """What an answer cost, by its provider's counts; one tier holds for all of it."""
    rates = rates_at(cost, sum(usage.get(name, 0) for name in COUNTED if name != "output"))
    return sum(float(rates.get(name) or 0) * usage.get(name, 0) for name in COUNTED) / 1e6

"""What a token costs where a model is asked, by the host's model record. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class AskingPrices:
    """Dollars for one token: uncached, read from the cache, generated."""

    fresh: float = 0.0
    read: float = 0.0
    output: float = 0.0

    @classmethod
    def of(cls, model: Mapping[str, Any] | None) -> AskingPrices:
        """From a host's model record; what it does not say is free, a read as dear as fresh."""
        cost = (model or {}).get("cost")
        named = cost if isinstance(cost, dict) else {}
        fresh, output = _price(named, "input", 0.0), _price(named, "output", 0.0)
        return cls(fresh, _price(named, "cacheRead", fresh), output)


def _price(cost: Mapping[str, Any], name: str, default: float) -> float:
    value = cost.get(name)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return float(value) / MILLION if usable and value is not None else default

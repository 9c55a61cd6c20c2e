"""What a model costs by public lists, for recordings, and what an answer of it cost.

A host's record has a live model's prices.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from math import inf
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


_LISTED_AS = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")

_Rates = tuple[float, ...]
"""Of prompts of more tokens than the first number."""

_UNLISTED: dict[str, tuple[_Rates, ...]] = {
    "gpt-6.2-astra": ((0, 8, 40, 0.4, 10), (272_000, 16, 60, 0.8, 20)),
    "gpt-6.2-sol": ((0, 2, 10, 0.1, 2.5), (272_000, 4, 15, 0.2, 5)),
}
"""What genai-prices 0.2.3 lacks, by `providers/data/openai.json` of pi-ai 1.6.0."""

_REGION_AND_MAKER = re.compile(r"^(?:[a-z]+\.)+")
"""Such as `us.anthropic.` at Amazon Bedrock."""


LONGEST_NAME = 200
"""A longer id is no model's."""


def prices(model: str, provider: str = "", time_ms: int = 0) -> Cost | None:
    """What a model cost at a time, if known.

    `time_ms`: milliseconds since 1970; 0: today.
    """
    if len(model) > LONGEST_NAME:
        return None
    now = datetime.now(UTC)
    is_past = 0 < time_ms < now.timestamp() * 1000
    time = datetime.fromtimestamp(time_ms / 1000, UTC) if is_past else now
    return _prices(model, provider, time.replace(minute=0, second=0, microsecond=0))


@cache
def _prices(model: str, provider: str, time: datetime) -> Cost | None:
    listed = (_listed(*names, time) for names in _names(model, provider))
    id = model.rpartition("/")[2]
    unlisted = (rates for name, rates in _UNLISTED.items() if id.startswith(name))
    rates = next(filter(None, listed), None) or next(unlisted, None)
    return None if rates is None else _cost(rates)


def _names(model: str, provider: str) -> Iterator[tuple[str | None, str]]:
    if provider:
        yield provider, model
    parts = model.split("/")
    for number in range(1, len(parts)):
        yield parts[number - 1], "/".join(parts[number:])
    yield None, parts[-1]
    yield None, _REGION_AND_MAKER.sub("", parts[-1])


def _listed(provider: str | None, id: str, time: datetime) -> tuple[_Rates, ...] | None:
    # Takes a fifth of a second, which whoever asks for no price does without.
    from genai_prices import Usage, calc_price

    try:
        listed_price = calc_price(Usage(), id, provider_id=provider, genai_request_timestamp=time)
    except LookupError:
        return None
    prices = [getattr(listed_price.model_price, name) for name in _LISTED_AS]
    starts = {tier.start for price in prices for tier in getattr(price, "tiers", ())}
    rates = tuple(
        (start, *(_at(price, start) for price in prices)) for start in sorted({0, *starts})
    )
    return rates if rates[0][1] else None


def _at(price: Any, start: int) -> float:
    tiers = [tier.price for tier in getattr(price, "tiers", ()) if tier.start <= start]
    return float(tiers[-1] if tiers else getattr(price, "base", price) or 0)


def _cost(rates: tuple[_Rates, ...]) -> Cost:
    short, *longer = (
        dict(zip(("inputTokensAbove", *COUNTED), each, strict=True)) for each in rates
    )
    return {**{name: short[name] for name in COUNTED}, "tiers": longer}


def prices_paid(messages: Iterable[Mapping[str, Any]]) -> dict[str, Cost]:
    """What models cost by Pi's records, by `provider/id`."""
    tokens: defaultdict[str, Counter[str]] = defaultdict(Counter)
    spent: defaultdict[tuple[str, str], float] = defaultdict(float)
    totals: defaultdict[str, float] = defaultdict(float)
    for message in messages:
        usage = message.get("usage")
        paid = usage.get("cost") if isinstance(usage, dict) else None
        if not isinstance(usage, dict) or not isinstance(paid, dict):
            continue
        model = f"{message.get('provider')}/{message.get('model')}"
        # Some name only what a call cost in all.
        if isinstance(total := paid.get("total"), int | float):
            totals[model] += total
        for name in COUNTED:
            count, cost = usage.get(name), paid.get(name)
            if isinstance(count, int) and isinstance(cost, int | float) and count > 0 <= cost < inf:
                tokens[model][name] += count
                spent[model, name] += cost
    rates = {
        model: {name: 1e6 * spent[model, name] / count for name, count in counts.items()}
        for model, counts in tokens.items()
    }
    free: dict[str, Cost] = {
        model: {} for model, cost in rates.items() if not any((*cost.values(), totals[model]))
    }
    return free | {model: cost for model, cost in rates.items() if cost.get("input")}

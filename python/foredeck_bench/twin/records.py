"""A model's prices, cache, and what its reasoning is bound to.

Made from Pi's own record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foredeck_bench.twin.cache import RULES, CacheRule, Usage
from foredeck_bench.twin.request import Api

Json = Mapping[str, Any]

_BOUND = re.compile(
    r"claude-(fable|mythos)-5[.-][12]|claude-(opus|sonnet|haiku)-5[.-]5|gpt-(6\.[2-9]|[7-9])"
)
"""Models whose reasoning holds only behind an unchanged prefix, in every turn:
platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks;
developers.openai.com/api/docs/guides/preserved-reasoning (from GPT-6.2 on)."""

_FORGETS = re.compile(r"claude-(3|opus-4-[01]|sonnet-4-[05]|haiku-4)|gpt-5(\.[1-5])?(-|$)|^o\d")
"""Models that see only the reasoning of the turn under way: Claude before Opus 4.5, and by
pi-ai 1.6.0 `api/openai-responses-shared.js` (`turn_boundary`) all of OpenAI's before GPT-5.6."""

_ONE_HOUR_FACTOR = 2
"""An hour's cache write costs so many times the input: pi-ai 1.6.0 `models.js`, `calculateCost`."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Dollars per million tokens, for prompts of more than `above` tokens."""

    input: float
    output: float
    read: float
    written: float
    above: int = 0


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A model of one provider.

    `bound`: reasoning holds only behind an unchanged prefix. `carries`: it sees that of earlier
    turns.
    """

    id: str
    rates: tuple[Rates, ...]
    cache: CacheRule
    bound: bool = True
    carries: bool = True
    always_thinks: bool = False

    @classmethod
    def of_pi(cls, api: Api, record: Json) -> ModelRecord:
        cost, compat = record["cost"], record.get("compat") or {}
        rule = RULES[api]
        if rule.kind == "breakpoints" and not compat.get("supportsExplicitPromptCacheMode"):
            rule = RULES["openai-completions"]
        life = (record.get("promptCache") or {}).get("short", rule.lifetime_s)
        name = str(record["id"])
        return cls(
            id=name,
            rates=(_rates(cost), *sorted(map(_rates, cost.get("tiers") or ()), key=_above)),
            cache=CacheRule(rule.kind, float(life), rule.minimum_tokens),
            bound=bool(_BOUND.search(name)),
            carries=not _FORGETS.search(name),
            always_thinks=(record.get("thinkingLevelMap") or {}).get("off", "") is None,
        )

    def dollars(self, usage: Usage) -> float:
        """What a request costs. A tier holds for the whole request:
        pi-ai 1.6.0 `models.js`, `calculateCost`."""
        rates = [each for each in self.rates if not each.above or usage.prompt > each.above][-1]
        return (
            usage.uncached * rates.input
            + usage.output * rates.output
            + usage.read * rates.read
            + (usage.written - usage.written_long) * rates.written
            + usage.written_long * rates.input * _ONE_HOUR_FACTOR
        ) / 1e6


def _rates(cost: Json) -> Rates:
    above = int(cost.get("inputTokensAbove", 0))
    return Rates(cost["input"], cost["output"], cost["cacheRead"], cost["cacheWrite"], above)


def _above(rates: Rates) -> int:
    return rates.above

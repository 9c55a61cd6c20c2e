"""The price of asking a host's model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from foredeck.context.state.gauge import tokens_of
from foredeck.hosts.host import CompleteParams, ModelResult, recorded_kept_s
from foredeck.model.call_values import CHARS_PER_TOKEN, CallStats
from foredeck.model.costs import Cost
from foredeck.model.costs import dollars as price_of

THINKING_ROOM = {"minimal": 1024, "low": 2048, "medium": 8192}
"""By level: Pi's budgets for models that need one."""
MOST_THINKING = 16_384
"""At higher levels."""


def cost_of(model: Mapping[str, Any] | None) -> Cost:
    """From a host's model record; what it leaves out is free, a read as dear as fresh input."""
    cost = (model or {}).get("cost")
    rates = cost if isinstance(cost, dict) else {}
    tiers = [tier for tier in rates.get("tiers") or () if isinstance(tier, dict)]
    above = [{**_rates(tier), "inputTokensAbove": int(tier["inputTokensAbove"])} for tier in tiers]
    return {**_rates(rates), "tiers": above}


def _rates(cost: Mapping[str, Any]) -> dict[str, Any]:
    fresh, output = _rate(cost, "input", 0.0), _rate(cost, "output", 0.0)
    return {"input": fresh, "cacheRead": _rate(cost, "cacheRead", fresh), "output": output}


def _rate(cost: Mapping[str, Any], name: str, default: float) -> float:
    value = cost.get(name)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return float(value) if usable and value is not None else default


class AskingTerms(NamedTuple):
    """Terms of asking a model now.

    `warm`: the call whose prompt is cached; `keeps`: whether there can be one; `rate`: characters
    per token.
    """

    model: str
    cost: Cost
    single_slot: bool
    warm: int | None
    prompt_tokens: int
    rate: float
    keeps: bool = True
    thinking: str = "off"
    warm_thinking: str = "off"

    @classmethod
    def of(cls, offer: ModelResult, stats: CallStats | None) -> AskingTerms:
        model = offer.model or {}
        return cls(
            model=f"{model.get('provider')}/{model.get('id')}",
            cost=cost_of(model),
            single_slot=offer.single_slot,
            warm=offer.warm,
            prompt_tokens=0 if stats is None else tokens_of(stats, stats.chars_sent),
            rate=CHARS_PER_TOKEN if stats is None else stats.rate,
            keeps=recorded_kept_s(model) is not None,
            thinking=offer.thinking,
            warm_thinking=offer.warm_thinking,
        )

    def room(self, question: CompleteParams) -> int:
        """Tokens for thinking before the answer."""
        level = self.thinking if question.warm is None else self.warm_thinking
        level = question.reasoning or level
        return 0 if level == "off" else THINKING_ROOM.get(level, MOST_THINKING)

    def with_room(self, question: CompleteParams) -> CompleteParams:
        """The question as sent."""
        most = question.max_tokens + self.room(question)
        return question.model_copy(update={"max_tokens": most})

    def price(self, question: CompleteParams, output_tokens: int | None = None) -> float:
        """Expected price in dollars; without `output_tokens`, of the longest answer."""
        chars = len(question.system or "") + sum(map(_chars, question.messages))
        # Uncached, read from the cache with the agent's last prompt, generated.
        fresh = int(chars / self.rate) + 1
        read = self.prompt_tokens if question.warm is not None else 0
        room = self.room(question)
        output = question.max_tokens + room if output_tokens is None else output_tokens + room // 3
        return price_of(self.cost, {"input": fresh, "cacheRead": read, "output": output})


def _chars(message: Mapping[str, Any]) -> int:
    content = message.get("content")
    if isinstance(content, str):
        return len(content)
    blocks = content if isinstance(content, list) else []
    return sum(len(str(block.get("text") or "")) for block in blocks if isinstance(block, dict))


def dollars(amount: float) -> str:
    """A price for people."""
    return f"${amount:.4f}" if amount < 1 else f"${amount:.2f}"

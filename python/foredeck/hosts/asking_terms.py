"""What asking one of a host's models would cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from foredeck.context.state.gauge import tokens_of
from foredeck.hosts.host import CompleteParams, ModelResult
from foredeck.model.call_values import CHARS_PER_TOKEN, CallStats

THINKING_ROOM = {"minimal": 1024, "low": 2048, "medium": 8192}
"""Tokens that thinking may take before an answer, by level: the budgets that Pi gives models which
need one."""
MOST_THINKING = 16_384
"""The same at every higher level."""


class AskingPrices(NamedTuple):
    """Dollars for one token: uncached, read from the cache, generated."""

    fresh: float = 0.0
    read: float = 0.0
    output: float = 0.0
    tiers: tuple[tuple[int, AskingPrices], ...] = ()
    """Other prices for prompts of more than so many tokens, the lowest such number first."""

    @classmethod
    def of(cls, model: Mapping[str, Any] | None) -> AskingPrices:
        """From a host's model record; what it does not say is free, a read as dear as fresh."""
        cost = (model or {}).get("cost")
        named = cost if isinstance(cost, dict) else {}
        tiers = [tier for tier in named.get("tiers") or () if isinstance(tier, dict)]
        above = [(int(tier["inputTokensAbove"]), _prices(tier)) for tier in tiers]
        return _prices(named)._replace(tiers=tuple(sorted(above)))

    def at(self, tokens: int) -> AskingPrices:
        """Those for a prompt of so many tokens."""
        return next((prices for above, prices in reversed(self.tiers) if tokens > above), self)


def _prices(cost: Mapping[str, Any]) -> AskingPrices:
    fresh, output = _price(cost, "input", 0.0), _price(cost, "output", 0.0)
    return AskingPrices(fresh, _price(cost, "cacheRead", fresh), output)


def _price(cost: Mapping[str, Any], name: str, default: float) -> float:
    value = cost.get(name)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return float(value) / 1_000_000 if usable and value is not None else default


class AskingTerms(NamedTuple):
    """What asking a model would mean now. `warm`: the call whose prompt would be read from the
    provider's cache, None for none; `prompt_tokens`: its tokens; `rate`: characters a token;
    `thinking`: how much the model would think, `warm_thinking`: behind that prompt."""

    model: str
    prices: AskingPrices
    single_slot: bool
    warm: int | None
    prompt_tokens: int
    rate: float
    thinking: str = "off"
    warm_thinking: str = "off"

    @classmethod
    def of(cls, offer: ModelResult, stats: CallStats | None) -> AskingTerms:
        """Of a model that can be asked. `stats`: of the session's newest call."""
        model = offer.model or {}
        return cls(
            model=f"{model.get('provider')}/{model.get('id')}",
            prices=AskingPrices.of(model),
            single_slot=offer.single_slot,
            warm=offer.warm,
            prompt_tokens=0 if stats is None else tokens_of(stats, stats.chars_sent),
            rate=CHARS_PER_TOKEN if stats is None else stats.rate,
            thinking=offer.thinking,
            warm_thinking=offer.warm_thinking,
        )

    def room(self, question: CompleteParams) -> int:
        """Tokens that the model may think before its answer."""
        level = self.thinking if question.warm is None else self.warm_thinking
        level = question.reasoning or level
        return 0 if level == "off" else THINKING_ROOM.get(level, MOST_THINKING)

    def with_room(self, question: CompleteParams) -> CompleteParams:
        """The question as it is sent."""
        most = question.max_tokens + self.room(question)
        return question.model_copy(update={"max_tokens": most})

    def price(self, question: CompleteParams, output_tokens: int | None = None) -> float:
        """Dollars that a question is expected to cost. `output_tokens`: how long the answer will
        be, before which a third of the room is expected to be thought; None: all as long as it may
        be."""
        chars = len(question.system or "") + sum(map(_chars, question.messages))
        # Uncached, read from the cache with the agent's last prompt, generated.
        fresh = int(chars / self.rate) + 1
        read = self.prompt_tokens if question.warm is not None else 0
        room = self.room(question)
        output = question.max_tokens + room if output_tokens is None else output_tokens + room // 3
        prices = self.prices.at(fresh + read)
        return fresh * prices.fresh + read * prices.read + output * prices.output


def _chars(message: Mapping[str, Any]) -> int:
    content = message.get("content")
    if isinstance(content, str):
        return len(content)
    blocks = content if isinstance(content, list) else []
    return sum(len(str(block.get("text") or "")) for block in blocks if isinstance(block, dict))


def dollars(amount: float) -> str:
    """For a person to read."""
    return f"${amount:.4f}" if amount < 1 else f"${amount:.2f}"

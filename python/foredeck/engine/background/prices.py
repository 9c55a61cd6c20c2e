"""What a question is expected to cost, from the prices of the host's model record. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foredeck.hosts.asking import CompleteParams

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

    def price(self, tokens: QuestionTokens) -> float:
        """What a question of this size costs."""
        return tokens.fresh * self.fresh + tokens.read * self.read + tokens.output * self.output


@dataclass(frozen=True, slots=True)
class QuestionTokens:
    """What a question sends that no cache has, reads from one, and is answered with."""

    fresh: int
    read: int
    output: int


def question_tokens(
    question: CompleteParams, prompt_tokens: int, rate: float, output: int | None
) -> QuestionTokens:
    """The size of a question. `prompt_tokens`: of the agent's last prompt, which a warm question
    reads; `rate`: characters a token; `output`: expected, None for as much as it may be."""
    chars = len(question.system or "") + sum(map(_chars, question.messages))
    read = prompt_tokens if question.warm is not None else 0
    limit = question.max_tokens
    return QuestionTokens(int(chars / rate) + 1, read, limit if output is None else output)


def _chars(message: Mapping[str, Any]) -> int:
    content = message.get("content")
    if isinstance(content, str):
        return len(content)
    blocks = content if isinstance(content, list) else []
    return sum(len(str(block.get("text") or "")) for block in blocks if isinstance(block, dict))


def _price(cost: Mapping[str, Any], name: str, default: float) -> float:
    value = cost.get(name)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return float(value) / MILLION if usable and value is not None else default

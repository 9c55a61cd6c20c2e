"""What an engine asks of its host, models above all.

Refused questions (`NoModel`, `NotAsked`) cost nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, Protocol, Self

from pydantic import Field, model_validator

from foredeck.context.state.gauge import tokens_of
from foredeck.errors import ForedeckError
from foredeck.hosts.protocol import Count, HostObject, Milliseconds, Name, Params
from foredeck.model.call_values import CHARS_PER_TOKEN, CallStats
from foredeck.prices import Cost
from foredeck.prices import dollars as price_of
from foredeck.store.protocol import Notify, silent

Tokens = Annotated[int, Field(ge=0)]

Dollars = Annotated[float, Field(ge=0)]


class ModelName(Params):
    """A model, as the host names it."""

    provider: Name
    id: Name


class CompleteParams(Params):
    messages: Annotated[list[HostObject], Field(min_length=1)]
    max_tokens: Annotated[int, Field(gt=0)]
    system: str | None = None
    model: ModelName | None = None
    """None: the selected one."""
    warm: Annotated[int, Field(gt=0)] | None = None
    """The call whose prompt the message extends."""
    wanted: bool | None = None
    """By the user, even of a model with a single slot."""

    @model_validator(mode="after")
    def _leaves_the_prompt_as_it_is(self) -> Self:
        own = self.system or self.model
        if self.warm is not None and (len(self.messages) > 1 or own):
            raise ValueError("with `warm` there is one message, and all else is the prompt's own")
        return self


class ModelUsage(Params):
    """Tokens of one call; `cost` in dollars."""

    read: Tokens
    written: Tokens
    fresh: Tokens
    output: Tokens
    cost: Dollars


class WantedCall(Params):
    """A tool call in an answer."""

    name: str
    arguments: dict[str, Any]


class CompleteResult(Params):
    """`failed` says why the answer is useless; `text` is then empty."""

    text: str
    calls: list[WantedCall]
    stop: str
    """The host's stop reason: `stop`, `length`, `toolUse`."""
    failed: str | None = None
    model: ModelName
    usage: ModelUsage
    single_slot: bool


class CompleteReply(Params):
    """The answer to `host/complete`."""

    message: HostObject
    """The model's, in the host's shape."""
    single_slot: bool


class ModelParams(Params):
    """`host/model`. `model` None: the selected one."""

    model: ModelName | None = None


_LONG_RETENTION_S = {"anthropic": 3600.0, "openai": 86_400.0, "azure-openai": 86_400.0}
"""By API prefix, if the model record does not say."""


_LASTING = re.compile(r"gpt-(?:5\.[6-9]|[6-9])")
"""OpenAI's models from GPT-5.6 on."""

_LASTING_S = {"azure-openai": 43_200.0, "openai": 1800.0}
"""Least cache lifetime by API prefix."""


def recorded_kept_s(model: Mapping[str, Any]) -> float | None:
    """Cache lifetime in seconds, if the model record says."""
    lifetimes = model.get("promptCache")
    tier = "long" if model.get("retention") == "long" else "short"
    recorded = lifetimes.get(tier) if isinstance(lifetimes, dict) else None
    return float(recorded) if isinstance(recorded, int | float) and recorded > 0 else None


def kept_s(model: Mapping[str, Any]) -> float | None:
    """The same, else by the provider's documentation."""
    recorded = recorded_kept_s(model)
    if recorded is not None:
        return recorded
    api, id = str(model.get("api") or ""), str(model.get("id") or "")
    lasting = _LASTING_S if _LASTING.search(id) else {}
    lives = _LONG_RETENTION_S if model.get("retention") == "long" else lasting
    return next((s for name, s in lives.items() if api.startswith(name)), None)


class ModelResult(Params):
    """The answer to `host/model`: what can be asked now."""

    model: HostObject | None
    """As in `context/assemble`; None for the given `reason`."""
    reason: str | None = None
    single_slot: bool = False
    """Whether it answers one at a time, and is asked only if wanted."""
    thinking: Name = "off"
    """Least thinking about a question."""
    warm: Count | None = None
    """The call whose prompt could be resent; None: see `cold`."""
    warm_thinking: Name = "off"
    """Least thinking behind that prompt."""
    sent_ms: Milliseconds = 0
    """When that prompt was last sent."""
    cold: str | None = None

    def as_of(self, now_ms: int) -> ModelResult:
        """The offer, without the prompt once its cache has expired."""
        if self.model is None or self.warm is None:
            return self
        # Others speak the providers' APIs as well, and a prompt that is not kept is paid in full.
        seconds = recorded_kept_s(self.model)
        if seconds is not None and now_ms - self.sent_ms < seconds * 1000:
            return self
        cold = UNKNOWN_TIME if seconds is None else DROPPED
        return self.model_copy(update={"warm": None, "cold": cold})


UNKNOWN_TIME = "the host does not know how long this provider keeps its cache"
DROPPED = "the provider has dropped the last call from its cache by now"


class NoModel(ForedeckError):
    """There is no model; the text says how to get one."""

    code = -32030


class NotAsked(ForedeckError):
    """The text says why the host does not send the question."""

    code = -32031


class UselessAnswer(ForedeckError):
    """The model's answer is useless. `usage` is what it took."""

    def __init__(self, text: str, usage: ModelUsage) -> None:
        super().__init__(text)
        self.usage = usage


class AskTimedOut(ForedeckError):
    """No answer in time; the cancelled call may have cost something."""


class AskCancelled(ForedeckError):
    """The host ended the call: the session or foredeck is closing."""


class AskModels(Protocol):
    """A host's models, for the engine."""

    async def offered(self, model: ModelName | None = None) -> ModelResult:
        """Whether this model can be asked now, and its price."""
        ...

    async def ask(self, question: CompleteParams, *, timeout_s: float) -> CompleteResult:
        """Asks one question. Raises what this module names."""
        ...


CallSoon = Callable[[Callable[[], None]], object]

Show = Callable[[str], None]
"""Shows background work; an empty text ends it."""


class Host(NamedTuple):
    """What a host offers.

    Without `call_soon`, files are checked before each call; without `models`, there is no
    background work.
    """

    notify: Notify = silent
    call_soon: CallSoon | None = None
    models: AskModels | None = None
    show: Show = lambda _text: None
    priced_in: str = ""
    name: str = "pi"


NO_HOST = Host()
"""A host that offers nothing."""


# The price of asking


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

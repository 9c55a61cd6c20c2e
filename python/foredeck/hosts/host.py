"""What an engine asks of the host that it serves, models above all.

Nothing is spent where a question is refused (`NoModel`, `NotAsked`). Whatever was sent comes back
with its `ModelUsage`, in the answer or in `UselessAnswer`: a meter misses only what was cancelled
or timed out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Protocol, Self

from pydantic import Field, model_validator

from foredeck.errors import ForedeckError
from foredeck.hosts.protocol import Count, HostObject, Milliseconds, Name, Params
from foredeck.store.protocol import Notify, silent

Tokens = Annotated[int, Field(ge=0)]

Dollars = Annotated[float, Field(ge=0)]


class ModelName(Params):
    """A model, as the host names it."""

    provider: Name
    id: Name


class CompleteParams(Params):
    """`host/complete`: one question. With `warm` there is one message, and system prompt, tools,
    reasoning, session and retention are those of the prompt that is asked again."""

    messages: Annotated[list[HostObject], Field(min_length=1)]
    """In the host's own shape; a time stamp may be left out."""
    max_tokens: Annotated[int, Field(gt=0)]
    system: str | None = None
    model: ModelName | None = None
    """None: the one that the user has selected."""
    reasoning: Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    tools: list[HostObject] | None = None
    session_id: str | None = None
    """By which a provider routes to its cache."""
    retention: Literal["none", "short", "long"] | None = None
    warm: Annotated[int, Field(gt=0)] | None = None
    """The call whose prompt the message is added to."""
    wanted: bool | None = None
    """The user wants it asked, even of a model that answers one at a time."""

    @model_validator(mode="after")
    def _leaves_the_prompt_as_it_is(self) -> Self:
        own = (self.system, self.model, self.reasoning, self.tools, self.session_id, self.retention)
        if self.warm is not None and (len(self.messages) > 1 or any(own)):
            raise ValueError("with `warm` there is one message, and all else is the prompt's own")
        return self


class ModelUsage(Params):
    """Tokens of one call: read from the provider's cache, written to it, neither, and generated.
    `cost` is in dollars, by the host's price list."""

    read: Tokens
    written: Tokens
    fresh: Tokens
    output: Tokens
    cost: Dollars


class WantedCall(Params):
    """A tool call in an answer to a question that came with tools."""

    name: str
    arguments: dict[str, Any]


class CompleteResult(Params):
    """The answer to `host/complete`. `failed` says why it is of no use; `text` is empty then."""

    text: str
    calls: list[WantedCall]
    stop: str
    """Why the model stopped, in the host's words: `stop`, `length`, `toolUse`."""
    failed: str | None = None
    model: ModelName
    usage: ModelUsage
    single_slot: bool


class ModelParams(Params):
    """`host/model`. `model`: which one; None: the one that the user has selected."""

    model: ModelName | None = None


_LONG_RETENTION_S = {"anthropic": 3600.0, "openai": 86_400.0, "azure-openai": 86_400.0}
"""Seconds of the long cache retention where the model record does not say, by the first part of the
API's name."""


def recorded_kept_s(model: Mapping[str, Any]) -> float | None:
    """How many seconds the provider keeps a prompt in its cache by the host's record of the model,
    None where that does not say."""
    lifetimes = model.get("promptCache")
    tier = "long" if model.get("retention") == "long" else "short"
    recorded = lifetimes.get(tier) if isinstance(lifetimes, dict) else None
    return float(recorded) if isinstance(recorded, int | float) and recorded > 0 else None


def kept_s(model: Mapping[str, Any]) -> float | None:
    """The same, else by the documentation of the provider whose API the model has."""
    recorded = recorded_kept_s(model)
    if recorded is not None or model.get("retention") != "long":
        return recorded
    api = str(model.get("api") or "")
    return next((s for name, s in _LONG_RETENTION_S.items() if api.startswith(name)), None)


class ModelResult(Params):
    """The answer to `host/model`: what could be asked now."""

    model: HostObject | None
    """As in `context/assemble`; None where there is none, for this `reason`."""
    reason: str | None = None
    single_slot: bool = False
    """It answers one at a time (on this machine, or at no price): never asked unless wanted."""
    thinking: Name = "off"
    """The least that it can think about a question."""
    warm: Count | None = None
    """The call whose prompt could be sent again; None: `cold` says why not."""
    warm_thinking: Name = "off"
    """The least that it thinks behind that prompt."""
    sent_ms: Milliseconds = 0
    """When that prompt was last sent."""
    cold: str | None = None

    def as_of(self, now_ms: int) -> ModelResult:
        """The offer with the prompt only while the provider has it in its cache."""
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
    """There is no model to ask; the text says how to come by one."""

    code = -32030


class NotAsked(ForedeckError):
    """The host does not send this question; the text says why."""

    code = -32031


class UselessAnswer(ForedeckError):
    """The model was asked, and its answer is of no use. `usage` is what that took."""

    def __init__(self, text: str, usage: ModelUsage) -> None:
        super().__init__(text)
        self.usage = usage


class AskTimedOut(ForedeckError):
    """No answer in time; the call was cancelled, and may have cost something."""


class AskCancelled(ForedeckError):
    """The host ended the call before its answer came: the session is over, or foredeck is."""


class AskModels(Protocol):
    """The models of a host, as the engine asks them."""

    async def offered(self, model: ModelName | None = None) -> ModelResult:
        """Whether this model could be asked now, at which price; None: the selected one."""
        ...

    async def ask(self, question: CompleteParams, *, timeout_s: float) -> CompleteResult:
        """One question. Raises what this module names."""
        ...


CallSoon = Callable[[Callable[[], None]], object]
"""Runs a function on the engine's thread, between two requests; may be called from any thread."""

Show = Callable[[str], None]
"""Shows the user what is done in the background; an empty text says that it has ended."""


class Host(NamedTuple):
    """What a host offers. Without `call_soon` no files are watched; without `models` nothing is
    done in the background. `priced_in`: where its users set the prices of a model."""

    notify: Notify = silent
    call_soon: CallSoon | None = None
    models: AskModels | None = None
    show: Show = lambda _text: None
    priced_in: str = ""


NO_HOST = Host()
"""Nothing is shown, watched or asked."""

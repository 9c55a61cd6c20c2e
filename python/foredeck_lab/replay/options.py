"""How to replay: configuration, prices, calibration, as which model, and Pi's cache warmer."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from foredeck.accounting.cache import Shapes
from foredeck.config import Config
from foredeck.config.load import load_config
from foredeck.context.messages.shape import Message
from foredeck.context.provider_cache import MINIMUM_TOKENS
from foredeck.context.rebase import prices_of
from foredeck.errors import ConfigError
from foredeck.model.call_values import CHARS_PER_TOKEN, DEFAULT_TTL_S, PromptTokens
from foredeck.model.calls import CallRecord
from foredeck.model.own_tools import DEFAULT_FACILITIES, FACILITY_TOOLS, Facility
from foredeck.prices import Cost, dollars, prices
from foredeck.regular_files import read_regular
from foredeck_agents.histories.records import Compaction, RecordedCall, Transcript

# By pi-ai 1.6.0 `cache-warming.js`, and `core/cache-warmer.js` of its agent.
_IDLE_S, _RUNNING_S = 1800, 3600
"""How long it repeats: while the user is awaited, and while a tool runs."""
_RETURNS = 0.15
"""Probability that the user is back in time."""
_LEAST_SAVING = 0.05
"""Dollars a refresh must be expected to save."""


@dataclass(frozen=True, slots=True)
class Warmer:
    """A model's `cost` as in Pi's record, and its cache lifetime."""

    cost: Cost
    ttl_s: float

    def times(self, tokens: float, since_ms: int, until_ms: int, *, idle: bool) -> list[int]:
        """When a prompt is resent before the next; `idle`: the user is awaited."""
        hit, miss = self._dollars(tokens, "cacheRead"), self._dollars(tokens, "cacheWrite")
        saving = (_RETURNS if idle else 1.0) * max(0.0, miss - hit) - hit
        every_ms = int(1000 * min(0.9 * self.ttl_s, self.ttl_s - 10))
        if saving < _LEAST_SAVING or every_ms <= 0:
            return []
        last_ms = min(until_ms, since_ms + 1000 * (_IDLE_S if idle else _RUNNING_S))
        return list(range(since_ms + every_ms, last_ms + 1, every_ms))

    def bill(self, tokens: float) -> float:
        return 1e6 * self._dollars(tokens, "cacheRead") / float(self.cost["input"])

    def _dollars(self, tokens: float, kind: str) -> float:
        # The one token of the answer is left out.
        return dollars(self.cost, {kind: round(tokens)})


def awaits_user(transcript: Transcript, call: RecordedCall) -> bool:
    """Whether the user was awaited, not a tool."""
    messages = transcript.shown_to(call)
    return bool(messages) and messages[-1].message.get("role") == "user"


@dataclass(slots=True)
class WarmedSide:
    """Warming on one side of a replay."""

    refreshes: int = 0
    cost: float = 0.0
    """In tokens of uncached input."""
    tokens: float = 0.0
    """Of the newest prompt."""
    used_ms: int = 0
    """When it was sent last."""

    def wait(self, warmer: Warmer, until_ms: int, *, idle: bool) -> list[int]:
        times = warmer.times(self.tokens, self.used_ms, until_ms, idle=idle)
        self.refreshes += len(times)
        self.cost += len(times) * warmer.bill(self.tokens)
        self.used_ms = max((self.used_ms, *times))
        return times


class WarmedSides:
    """Both sides of a replay; `scale` converts the engine's tokens."""

    def __init__(self, warmer: Warmer, scale: float) -> None:
        self.plain, self.ours = WarmedSide(), WarmedSide()
        self._warmer, self._scale = warmer, scale

    def before(self, time_ms: int, *, idle: bool) -> int:
        """When foredeck's last prompt was last sent, in milliseconds since 1970; 0 before the
        first."""
        for side in (self.plain, self.ours):
            side.wait(self._warmer, time_ms, idle=idle)
        return self.ours.used_ms

    def after(self, record: CallRecord) -> None:
        """The engine takes plain Pi's cache for as warm as its own."""
        cache, plain = record.cache, record.cache.baseline or PromptTokens(0, 0, 0)
        warm, ours_warm = (self._is_warm(side, record) for side in (self.plain, self.ours))
        if warm != ours_warm:
            # A prompt that got shorter was compacted: nothing of it was sent before.
            saving = round(self.plain.tokens / self._scale) if warm else 0
            read = saving if MINIMUM_TOKENS <= saving <= sum(plain) else 0
            other = PromptTokens(read, sum(plain) - read, 0).cost(record.model)
            self.plain.cost += (other - plain.cost(record.model)) * self._scale
        ours = (cache.read or 0) + (cache.written or 0) + (cache.fresh or 0)
        for side, tokens in ((self.plain, sum(plain)), (self.ours, ours)):
            side.tokens, side.used_ms = tokens * self._scale, record.time_ms

    def _is_warm(self, side: WarmedSide, record: CallRecord) -> bool:
        return record.time_ms - side.used_ms <= self._warmer.ttl_s * 1000


ASSUMED_REASONING = 120.0
"""Mean tokens of reasoning, for answers recorded without any."""


@dataclass(frozen=True, slots=True)
class ReplayedModel:
    """A model to replay as. `cost`: dollars for a million tokens; `cache`: its provider's rule."""

    provider: str
    id: str
    api: str
    cost: Cost
    cache: str
    ttl_s: int
    warmed: bool = False
    """Whether Pi keeps its cache warm."""

    def answering(self, transcript: Transcript) -> Transcript:
        """The session as this model's."""

        def changed(message: Message) -> Message:
            names = {"provider": self.provider, "model": self.id, "api": self.api}
            return {**message, **names} if message.get("role") == "assistant" else message

        messages = [replace(each, message=changed(each.message)) for each in transcript.messages]
        calls = [
            replace(call, provider=self.provider, model=self.id, api=self.api)
            for call in transcript.calls
        ]
        return replace(transcript, messages=messages, calls=calls)


_ANTHROPIC = ("anthropic", "anthropic-messages", "anthropic", DEFAULT_TTL_S)
_OPENAI = ("openai", "openai-responses")
_FAMILIES: dict[str, tuple[str, str, str, int, bool]] = {
    r"claude-(fable|mythos|(haiku|opus|sonnet)-(4-[6-9]|[5-9]))": (*_ANTHROPIC, True),
    r"claude-": (*_ANTHROPIC, False),
    r"gpt-(5\.[6-9]|[6-9])": (*_OPENAI, "breakpoints", 1800, False),
    r"gpt-": (*_OPENAI, "openai", DEFAULT_TTL_S, False),
}
"""By a name's beginning: provider, API, cache and its seconds, and whether Pi 1.6.0 warms it
(`promptCache`, and on Anthropic's API `forceAdaptiveThinking`)."""


def replayed_model(name: str) -> ReplayedModel:
    """The model of that name, with or without its provider. Raises `ConfigError`."""
    id = name.rpartition("/")[2]
    family = next((each for start, each in _FAMILIES.items() if re.match(start, id)), None)
    cost = prices(name)
    if family is None or cost is None:
        raise ConfigError(
            f"{name} cannot be replayed as: expected a Claude or GPT model with a known price, "
            "such as claude-opus-5-5 or gpt-6.2-sol."
        )
    provider, api, cache, ttl_s, warmed = family
    return ReplayedModel(provider, id, api, cost, cache=cache, ttl_s=ttl_s, warmed=warmed)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How to replay recorded sessions."""

    store: Literal["sqlite", "xtdb"] = "sqlite"
    layout: str = "anchored"
    policy: str = "adaptive"
    restart_every: int | None = None
    """Calls after which the engine is replaced."""
    prompts: Path | None = None
    """For prompts that would have been sent."""
    window: int | None = 200_000
    """Of the recorded models, in tokens."""
    settings: tuple[str, ...] = ()
    """`KEY=VALUE`; no file or variable is read, so that figures compare."""

    tools: tuple[Facility, ...] = DEFAULT_FACILITIES

    observes: bool = False
    """Whether chat is observed from the first threshold on; a model's price is counted."""

    ttl_s: float = DEFAULT_TTL_S
    """The provider's cache lifetime."""
    cache: str = "ideal"
    """The cache that the engine plans for."""
    prices: str | None = None
    """A model on the price list, or a file; None: by `as_model`, else by call."""
    as_model: ReplayedModel | None = None
    """The model of all answers."""
    warm: bool = False
    """Whether Pi's warmer keeps the cache of `as_model`."""

    def cost(self) -> Cost | None:
        """The model record's `cost`; None if each call has its own model's. Raises
        `ConfigError`."""
        if self.prices is not None:
            return load_cost(self.prices)
        return None if self.as_model is None else self.as_model.cost

    def warmer(self) -> Warmer | None:
        """What keeps the cache warm, if anything. Raises `ConfigError`."""
        cost = self.cost()
        if self.warm and self.as_model is None:
            raise ConfigError("--warm needs --as MODEL: it is that model's cache that is warmed.")
        if not self.warm or self.as_model is None or not self.as_model.warmed or cost is None:
            return None
        return Warmer(cost, self.ttl_s)

    def config(self, home: Path) -> Config:
        rules = {"anthropic": "markers", "breakpoints": "breakpoints"}
        cache = rules.get(self.cache, "prefix")
        own = (f"layout={self.layout}", f"policy={self.policy}", f"rebase.cache={cache}")
        flags = (*own, *self._tools(), *self.settings, f"home={home}")
        return load_config(
            flags=flags, environ={}, user_file=Path(os.devnull), constants=True
        ).config

    def _tools(self) -> Iterable[str]:
        for facility in FACILITY_TOOLS:
            yield f"tools.{facility}={'on' if facility in self.tools else 'off'}"


# Prices


def load_cost(name: str) -> Cost:
    """The `cost` of a model on the price list, or of a JSON file. Raises `ConfigError`."""
    try:
        value = json.loads(read_regular(name))
    except FileNotFoundError as error:
        if (listed := prices(name)) is not None:
            return listed
        raise ConfigError(f"{name} is neither a file nor a model with a known price.") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name} cannot be read as JSON: {error}") from error
    cost = value.get("cost", value) if isinstance(value, dict) else None
    if not isinstance(cost, dict) or not _finite(cost) or not prices_of(cost).known:
        raise ConfigError(
            f"{name} has no prices: expected an object with input, cacheRead and cacheWrite, "
            "such as `cost` of a model in Pi's models.json."
        )
    return cost


def _finite(cost: dict[str, Any]) -> bool:
    return all(math.isfinite(v) for v in cost.values() if isinstance(v, int | float))


# Plain Pi's side: what the host alone would have sent, and the tokens that its provider counted


MIN_POINTS = 5
"""Fewer counted calls give no rate."""

PLAUSIBLE = (1.0, 8.0)
"""Possible characters per token."""

_INPUT = ("input", "cacheRead", "cacheWrite")


@dataclass(frozen=True, slots=True)
class Calibration:
    """A rate, and `head_tokens`, which precede the messages."""

    chars_per_token: float = CHARS_PER_TOKEN
    head_tokens: float = 0.0


def calibrate(transcript: Transcript) -> Calibration:
    """Fits reported input tokens against characters, by least squares, else their ratio."""
    shapes = Shapes()
    points = [
        (float(sum(shape.chars for shape in shapes.of(prompt))), tokens)
        for call, prompt in zip(
            transcript.calls, plain_prompts(transcript, transcript.compactions), strict=True
        )
        if (tokens := _reported(transcript.answer_to(call))) > 0
    ]
    if len(points) < MIN_POINTS:
        return Calibration()
    return _fit(points)


def _fit(points: list[tuple[float, float]]) -> Calibration:
    mean_x = _mean(x for x, _ in points)
    mean_y = _mean(y for _, y in points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if not mean_x or not spread:
        return Calibration()
    # The least-squares line.
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    head = mean_y - slope * mean_x
    if slope <= 0 or head < 0:
        # Prompts that hardly grow give no line: all of the tokens are taken to be messages'.
        slope, head = mean_y / mean_x, 0.0
    if not PLAUSIBLE[0] <= 1 / slope <= PLAUSIBLE[1]:
        return Calibration()
    return Calibration(1 / slope, head)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def _reported(message: Message) -> float:
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return 0.0
    return float(sum(v for name in _INPUT if isinstance(v := usage.get(name), int | float)))


def plain_prompts(transcript: Transcript, compactions: list[Compaction]) -> Iterator[list[Message]]:
    """What Pi alone would have sent, with these compactions."""
    own = compactions
    for call in transcript.calls:
        branch = transcript.along(call)
        compactions = branch.compactions if call.branch else own
        number = sum(1 for compaction in compactions if compaction.seen <= call.seen)
        first_kept = compactions[number - 1].kept_from if number else 0
        messages = [r.message for r in branch.edited(call.seen)[first_kept:] if r is not None]
        yield [*map(_summary, compactions[number - 1 : number] if number else ()), *messages]


def _summary(compaction: Compaction) -> Message:
    return {"role": "compactionSummary", "summary": compaction.summary}

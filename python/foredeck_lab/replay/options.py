"""How to replay: configuration, prices, and as which model."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foredeck.config import Config
from foredeck.config.load import load_config
from foredeck.context.messages.shape import Message
from foredeck.context.rebase import prices_of
from foredeck.errors import ConfigError
from foredeck.model.call_values import DEFAULT_TTL_S
from foredeck.model.own_tools import DEFAULT_FACILITIES, FACILITY_TOOLS, Facility
from foredeck.prices import Cost, prices
from foredeck.regular_files import read_regular
from foredeck_agents.histories.records import Transcript
from foredeck_lab.replay.pi import Warmer


@dataclass(frozen=True, slots=True)
class ReplayedModel:
    """A model to replay as. `cost`: dollars for a million tokens; `cache`: its provider's rule."""

    provider: str
    model: str
    api: str
    cost: Cost
    cache: str
    ttl_s: int
    warmed: bool = False
    """Whether Pi keeps its cache warm."""

    def answering(self, transcript: Transcript) -> Transcript:
        """The session as this model's."""

        def changed(message: Message) -> Message:
            names = {"provider": self.provider, "model": self.model, "api": self.api}
            return {**message, **names} if message.get("role") == "assistant" else message

        messages = [replace(each, message=changed(each.message)) for each in transcript.messages]
        calls = [
            replace(call, provider=self.provider, model=self.model, api=self.api)
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

    def by_model(self, transcript: Transcript) -> Transcript:
        """The session as it is replayed: as of `as_model`, if that is named."""
        return transcript if self.as_model is None else self.as_model.answering(transcript)

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

"""Recorded sessions as another model's: its prices, cache, and bound reasoning."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from foredeck.context.messages.shape import Message
from foredeck.errors import ConfigError
from foredeck.model.call_values import DEFAULT_TTL_S
from foredeck.prices import Cost, prices
from foredeck_agents.histories.records import Transcript

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

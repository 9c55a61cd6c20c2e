"""Recorded sessions as another model would have answered them: its prices, its cache, and what its
reasoning is bound to."""

from __future__ import annotations

from dataclasses import dataclass, replace

from foredeck.context.messages.shape import Message
from foredeck.errors import ConfigError
from foredeck.histories.records import Transcript

ASSUMED_REASONING = 120.0
"""Tokens of reasoning of an answer that was recorded without any: the mean of those with some."""


@dataclass(frozen=True, slots=True)
class ReplayedModel:
    """A model that recordings are replayed as. `cost`: dollars for a million tokens, as in Pi's
    model record. `cache`: by which rule its provider finds a prompt again."""

    provider: str
    id: str
    api: str
    cost: dict[str, float]
    cache: str
    ttl_s: int

    def answering(self, transcript: Transcript) -> Transcript:
        """The session as if this model had given every answer."""

        def changed(message: Message) -> Message:
            names = {"provider": self.provider, "model": self.id, "api": self.api}
            return {**message, **names} if message.get("role") == "assistant" else message

        messages = [replace(each, message=changed(each.message)) for each in transcript.messages]
        calls = [
            replace(call, provider=self.provider, model=self.id, api=self.api)
            for call in transcript.calls
        ]
        return replace(transcript, messages=messages, calls=calls)


_PROVIDERS = {
    "claude": ("anthropic", "anthropic-messages", 300),
    "gpt": ("openai", "openai-responses", 1800),
}
"""By the family of a model: its provider, its API, and for how many seconds that keeps a prompt."""

_PRICES = {
    "claude-opus-4-5": (5, 25, 0.5),
    "claude-opus-5-5": (4, 20, 0.2),
    "claude-sonnet-5-5": (2, 10, 0.1),
    "claude-fable-5-2": (8, 40, 0.2),
    "gpt-5.6-sol": (4, 20, 0.4),
    "gpt-6.1-sol": (2, 10, 0.1),
    "gpt-6.2-sol": (2, 10, 0.1),
}
"""Dollars for a million tokens of input, output and cached input, by the model records of Pi 1.6.0.
All of them charge a quarter more for input that is written to the cache."""


def replayed_model(name: str) -> ReplayedModel:
    """The model of that name, with or without its provider. Raises `ConfigError`."""
    id = name.rpartition("/")[2]
    if id not in _PRICES:
        known = ", ".join(_PRICES)
        raise ConfigError(f"no prices are known of {name} to replay as; of these: {known}")
    input, output, read = _PRICES[id]
    cost = {"input": input, "output": output, "cacheRead": read, "cacheWrite": 1.25 * input}
    provider, api, ttl_s = _PROVIDERS[id.partition("-")[0]]
    return ReplayedModel(provider, id, api, cost, cache=provider, ttl_s=ttl_s)

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


def _anthropic(id: str, input: float, output: float, read: float) -> ReplayedModel:
    cost = {"input": input, "output": output, "cacheRead": read, "cacheWrite": 1.25 * input}
    return ReplayedModel("anthropic", id, "anthropic-messages", cost, "anthropic", 300)


def _openai(id: str, input: float, output: float, read: float) -> ReplayedModel:
    cost = {"input": input, "output": output, "cacheRead": read, "cacheWrite": 1.25 * input}
    return ReplayedModel("openai", id, "openai-responses", cost, "openai", 1800)


# By the model records of Pi 1.6.0.
MODELS = {
    model.id: model
    for model in (
        _anthropic("claude-opus-4-5", 5, 25, 0.5),
        _anthropic("claude-opus-5-5", 4, 20, 0.2),
        _anthropic("claude-sonnet-5-5", 2, 10, 0.1),
        _anthropic("claude-fable-5-2", 8, 40, 0.2),
        _openai("gpt-5.6-sol", 4, 20, 0.4),
        _openai("gpt-6.1-sol", 2, 10, 0.1),
        _openai("gpt-6.2-sol", 2, 10, 0.1),
    )
}


def replayed_model(name: str) -> ReplayedModel:
    """The model of that name, with or without its provider. Raises `ConfigError`."""
    try:
        return MODELS[name.rsplit("/", 1)[-1]]
    except KeyError:
        known = ", ".join(MODELS)
        raise ConfigError(
            f"no prices are known of {name} to replay as; of these: {known}"
        ) from None

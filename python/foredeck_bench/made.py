"""Recorded sessions as another provider would have carried them, and with results masked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from foredeck.accounting.shapes import blocks_of, chars_of
from foredeck.context.messages.shape import Message
from foredeck_agents.histories.records import Transcript

SEALS = ("thinkingSignature", "thoughtSignature", "textSignature")


def on_wire(transcript: Transcript, api: str) -> Transcript:
    """The session over another wire, with no model of Anthropic's."""

    def changed(message: Message) -> Message:
        return {**message, "api": api, "model": _renamed(str(message.get("model") or ""))}

    calls = [replace(c, api=api, model=_renamed(c.model)) for c in transcript.calls]
    return replace(_with_answers(transcript, changed), calls=calls)


def unsealed(transcript: Transcript) -> Transcript:
    """The session without any signed or encrypted reasoning."""

    def changed(message: Message) -> Message:
        bare = [{k: v for k, v in block.items() if k not in SEALS} for block in blocks_of(message)]
        return {**message, "content": bare} if bare else message

    return _with_answers(transcript, changed)


def _with_answers(transcript: Transcript, change: Callable[[Message], Message]) -> Transcript:
    messages = [
        replace(recorded, message=change(recorded.message))
        if recorded.message.get("role") == "assistant"
        else recorded
        for recorded in transcript.messages
    ]
    return replace(transcript, messages=messages)


def _renamed(model: str) -> str:
    return model.replace("claude", "model")


NEWEST = 10
"""Results that stay."""

MASK = "[an old result that is not shown any more]"


def masked_prompts(transcript: Transcript) -> Iterator[list[Message]]:
    """Each call's prompt with all but the newest results masked."""
    messages = [recorded.message for recorded in transcript.messages]
    results = [i for i, message in enumerate(messages) if message.get("role") == "toolResult"]
    prompt: list[Message] = []
    masked = 0
    for call in transcript.calls:
        prompt += messages[len(prompt) : call.seen]
        result_count = sum(index < call.seen for index in results)
        for index in results[masked : max(masked, result_count - NEWEST)]:
            if chars_of(messages[index]) > len(MASK):
                prompt[index] = {**messages[index], "content": [{"type": "text", "text": MASK}]}
        masked = max(masked, result_count - NEWEST)
        yield list(prompt)

"""The simplest rule against long prompts: old tool results are masked, at every call."""

from __future__ import annotations

from collections.abc import Iterator

from foredeck.accounting.shapes import chars_of
from foredeck.context.messages.shape import Message
from foredeck.histories.records import Transcript

NEWEST = 10
"""Results that stay."""

MASK = "[an old result that is not shown any more]"


def masked_prompts(transcript: Transcript, newest: int = NEWEST) -> Iterator[list[Message]]:
    """The prompt of each call with all but the newest results masked, never to come back."""
    messages = [recorded.message for recorded in transcript.messages]
    results = [i for i, message in enumerate(messages) if message.get("role") == "toolResult"]
    prompt: list[Message] = []
    done = 0
    for call in transcript.calls:
        prompt += messages[len(prompt) : call.seen]
        seen = sum(index < call.seen for index in results)
        for index in results[done : max(done, seen - newest)]:
            if chars_of(messages[index]) > len(MASK):
                prompt[index] = {**messages[index], "content": [{"type": "text", "text": MASK}]}
        done = max(done, seen - newest)
        yield list(prompt)

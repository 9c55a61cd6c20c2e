"""Signed reasoning in a client's request, which is bound to what stood before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]

_SIGNED = ("thinking", "redacted_thinking")


def asks_to_drop(body: Mapping[str, Any]) -> bool:
    """Whether the provider leaves out stale reasoning instead of refusing it."""
    thinking = body.get("thinking")
    binding = thinking.get("block_binding") if isinstance(thinking, dict) else None
    how = binding.get("prefix_mismatch_behavior") if isinstance(binding, dict) else None
    return how == "drop_block"


def unsigned(message: Message) -> Message:
    """An answer without signed reasoning, unless nothing else is left."""
    content = message.get("content")
    if message.get("role") != "assistant" or not isinstance(content, list):
        return message
    rest = [b for b in content if not (isinstance(b, dict) and b.get("type") in _SIGNED)]
    return {**message, "content": rest} if rest and len(rest) < len(content) else message


def earlier_turns(messages: Sequence[Message]) -> int:
    """Messages before the user's last words; a provider wants later reasoning back."""
    for place in reversed(range(len(messages))):
        message = messages[place]
        if message.get("role") == "user" and not _is_result(message.get("content")):
            return place
    return 0


def without_signed(messages: Sequence[Message], upto: int) -> list[Message]:
    """The messages, without signed reasoning before `upto`."""
    return [unsigned(m) if place < upto else m for place, m in enumerate(messages)]


def _is_result(content: Any) -> bool:
    blocks = content if isinstance(content, list) else [None]
    return all(isinstance(b, dict) and b.get("type") == "tool_result" for b in blocks)

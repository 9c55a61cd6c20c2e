"""What both provider APIs refuse, and how a refusal is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

# What Pi's Anthropic adapter makes up when a call's result is missing from the list.
INVENTED_RESULT = "No result provided"


@dataclass(frozen=True, slots=True)
class Violation:
    """One refusal: request index, rule, and reason."""

    request: int
    rule: str
    message: str


Finding = tuple[str, str]
"""A rule's name and the provider's words for it."""


def check_list(body: Json) -> Iterator[Finding]:
    """A message list must be one, and not empty."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "empty_messages", "messages: at least one message is required"


def check_invented_result(messages: list[Json]) -> Iterator[Finding]:
    """Results that the host's adapter made up for lost ones."""
    for index, message in enumerate(messages):
        if any(INVENTED_RESULT in text for text in _strings(message.get("content"))):
            yield "invented_result", f"messages.{index}: {INVENTED_RESULT!r} stands in the prompt"


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)

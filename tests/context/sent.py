"""Prompts that went out, in a form in which they can be compared message by message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from foredeck.context.messages.shape import Message, identifying_fields
from foredeck.hosts.outgoing import SlotPlan, rewritten
from foredeck.model.call_values import CallStats, Decision
from foredeck.model.calls import CallRecord


@dataclass
class Sent:
    """One prompt. `parts[i]`: what went out for message `i`; the last entry, what came after."""

    messages: list[Message]
    prompt: list[Message]
    parts: list[list[Message]]
    call: int | None
    """None where it went out without the engine."""
    record: CallRecord
    """Without fields where it went out without the engine."""

    @property
    def decision(self) -> Decision:
        """What the engine decided, and why."""
        return self.record.decision

    @property
    def stats(self) -> CallStats:
        """The engine's figures for this call."""
        return self.record.stats

    @cached_property
    def parts_as_bytes(self) -> list[str]:
        """The parts as they were when this was first asked for."""
        return list(map(as_bytes, self.parts))

    def text(self, index: int) -> str:
        """All text of what went out for message `index`."""
        return "\n".join(message_text(message) for message in self.parts[index])


def last(sent: Sent) -> str:
    """All text of what went out for the newest message."""
    return sent.text(len(sent.messages) - 1)


def message_text(message: Message) -> str:
    """The text blocks of a message, joined by newlines."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(b["text"] for b in content or () if b.get("type") == "text")


def common(one: Sequence[Message], other: Sequence[Message]) -> int:
    """How many messages two lists share from the beginning."""
    pairs = zip(one, other, strict=False)
    shorter = min(len(one), len(other))
    return next((i for i, (a, b) in enumerate(pairs) if not is_same(a, b)), shorter)


def is_same(one: Message, other: Message) -> bool:
    """Whether two messages cannot be told apart; most that are compared are one."""
    return one is other or identifying_fields(one) == identifying_fields(other)


def as_bytes(messages: Sequence[Message]) -> str:
    """Everything by which two prompts can differ, the order of the keys included."""
    return json.dumps([identifying_fields(message) for message in messages])


def as_values(messages: Sequence[Message]) -> str:
    """As `as_bytes`, but for the order of the keys, which a store does not keep."""
    return json.dumps([identifying_fields(message) for message in messages], sort_keys=True)


def split(messages: Sequence[Message], plan: SlotPlan) -> list[list[Message]]:
    """What goes out for each message (with what stands before it), and at the end."""
    parts = []
    for index, message in enumerate(messages):
        slot = plan.slot(index)
        own = [] if slot.is_omitted else [message]
        if slot.blocks is not None:
            own = [rewritten(message, slot.blocks)]
        parts.append([*slot.says, *own])
    parts.append([*plan.slot(len(messages)).says])
    return parts

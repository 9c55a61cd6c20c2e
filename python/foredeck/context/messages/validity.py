"""What makes a list of messages in the stored shape a prompt that a provider accepts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foredeck.context.messages.shape import UNSENT_STOPS, Message

SENT_ROLES = frozenset(
    {
        "user",
        "assistant",
        "toolResult",
        "bashExecution",
        "custom",
        "branchSummary",
        "compactionSummary",
    }
)
"""Roles that the host turns into messages of a provider. It silently leaves out all others."""


def find_faults(messages: Sequence[Message]) -> list[str]:
    """Everything that a provider would refuse, as texts; empty for a valid prompt.

    Aborted and failed answers are left out, as the host leaves them out of what it sends.
    """
    faults: list[str] = []
    pending: dict[str, int] = {}
    begun = False
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in SENT_ROLES or message.get("excludeFromContext"):
            continue
        faults.extend(_unapplied(message, index))
        if role == "toolResult":
            if pending.pop(message.get("toolCallId") or "", None) is None:
                faults.append(f"message {index}: a result without its call")
            continue
        faults.extend(f"message {at}: call {id} has no result" for id, at in pending.items())
        pending = {}
        if role == "assistant":
            if message.get("stopReason") in UNSENT_STOPS:
                continue
            if not begun:
                faults.append(f"message {index}: the list begins with an answer")
            pending = dict.fromkeys(_call_ids(message), index)
        begun = True
    faults.extend(f"message {at}: call {id} has no result" for id, at in pending.items())
    if not begun:
        faults.append("the list is empty")
    return faults


def _call_ids(message: Message) -> list[str]:
    return [
        block.get("id") or ""
        for block in message.get("content") or ()
        if isinstance(block, dict) and block.get("type") == "toolCall"
    ]


def _unapplied(message: Message, index: int) -> list[str]:
    content: Any = message.get("content")
    if isinstance(content, list) and any(
        isinstance(block, dict) and "keep" in block for block in content
    ):
        return [f"message {index}: an edit was not applied"]
    return []

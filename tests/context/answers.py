"""What makes the shim refuse an answer.

The rules are those of `ts-shim/context/plan.ts`; a test host that took what the
shim refuses would prove nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foredeck.context.messages.items import Block
from foredeck.context.messages.shape import Message
from foredeck.hosts.simulated_host import SlotPlan

SENT = {
    *("user", "assistant", "toolResult", "custom"),
    *("bashExecution", "branchSummary", "compactionSummary"),
}


def refusal(
    answer: Mapping[str, Any], messages: Sequence[Message], keep: int, plan: SlotPlan
) -> str | None:
    """Why the shim would not use an answer, None where it would."""
    start, length = answer["from"], len(messages)
    if not 0 <= start <= keep:
        return f"from is {start}, not in 0..{keep}"
    index = start
    for name, value in answer["ops"]:
        if name == "say":
            if not _is_insertable(value):
                return f"what is said before {index} is no message that may be inserted"
            separates = index < length and messages[index].get("role") == "toolResult"
            if separates and not plan.slot(index).is_omitted:
                return f"what is said before {index} separates a tool result from its call"
            continue
        fault = _edit_fault(value, messages[index]) if name == "rewrite" else None
        if fault:
            return f"edit {index} {fault}"
        index += 1 if name == "rewrite" else value
    if index != length:
        return f"the operations are for {index} of {length} messages"
    added = sum(len(slot.says) for slot in plan.slots) - len(plan.omitted())
    if messages and length + added <= 0:
        return "nothing would be left to send"
    return _torn_pair(messages, plan)


def _torn_pair(messages: Sequence[Message], plan: SlotPlan) -> str | None:
    """A call and its results stay or go together, and a result of ours answers a call."""
    dropped = {messages[index].get("toolCallId") for index in plan.omitted()}
    open_calls: set[str] = set()
    for index in range(len(messages) + 1):
        slot = plan.slot(index)
        group = [(message, True) for message in slot.says]
        if index < len(messages) and _is_sent(messages[index]) and not slot.is_omitted:
            group.append((messages[index], False))
        for message, is_ours in group:
            if message.get("role") == "toolResult":
                id = message.get("toolCallId")
                if id not in open_calls and (is_ours or id in dropped):
                    return f"the result of {id} would stand without its call"
                open_calls.discard(str(id))
                continue
            if open_calls & dropped:
                return f"drops tear {open_calls & dropped} from their results"
            open_calls = _calls_of(message)
    return f"drops tear {open_calls & dropped}" if open_calls & dropped else None


def _is_sent(message: Message) -> bool:
    """Whether Pi sends it to a model; it leaves out roles that it does not know."""
    return message.get("role") in SENT and not message.get("excludeFromContext")


def _calls_of(message: Message) -> set[str]:
    if message.get("role") != "assistant" or message.get("stopReason") in ("error", "aborted"):
        return set()
    blocks = message.get("content") or ()
    return {b["id"] for b in blocks if isinstance(b, dict) and b.get("type") == "toolCall"}


def _edit_fault(blocks: list[Block], message: Message) -> str | None:
    content = message.get("content")
    count = 1 if isinstance(content, str) else len(content or ())
    if not blocks:
        return "leaves no content"
    for block in blocks:
        if "keep" in block:
            if not 0 <= block["keep"] < count:
                return "keeps a block that is not there"
        elif message.get("role") == "assistant" and block.get("type") == "toolCall":
            continue
        elif block.get("type") != "text" or not isinstance(block.get("text"), str):
            return "holds a block that does not belong there"
    return None


def _is_insertable(message: Message) -> bool:
    """A user's message, or the result of a call that never got one."""
    if message.get("role") not in ("user", "toolResult"):
        return False
    if message["role"] == "toolResult" and not (message["toolCallId"] and message["toolName"]):
        return False
    content = message.get("content")
    return bool(content) and all(block["type"] in ("text", "image") for block in content)

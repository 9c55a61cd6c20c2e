"""From the plan of a prompt to Pi's messages: as operations for the shim, and applied to a list.

On the wire a plan is a list of operations that use up the host's messages in their order:
`["keep", n]` and `["omit", n]` the next n, `["rewrite", blocks]` the next one, and `["say",
message]` none, since that is a message of ours. An operation names no index, so none can be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from foredeck.context.messages.items import Block
from foredeck.context.plan.ops import Omit, Op, apply_recipe
from foredeck.context.plan.says import Say
from foredeck.hosts.pi.messages import Message

WireOp = list[Any]


def to_ops(
    outgoing: Iterable[Say | Op], time_of: Callable[[int], int], start: int = 0
) -> list[WireOp]:
    """What goes out from message `start` on, for the wire. `time_of`: the time stamp of a message
    of the host's; one of ours takes that of the message before it."""
    found: list[WireOp] = []
    index = start
    for each in outgoing:
        if isinstance(each, Say):
            found.append(["say", to_message(each, time_of(index - 1) if index else 0)])
            continue
        index += 1
        if each.blocks and not isinstance(each, Omit):
            found.append(["rewrite", each.blocks])
            continue
        name = "omit" if isinstance(each, Omit) else "keep"
        if found and found[-1][0] == name:
            found[-1][1] += 1
        else:
            found.append([name, 1])
    return found


def to_message(say: Say, timestamp: int = 0) -> Message:
    """A message of ours in Pi's shape."""
    if say.purpose == "no_result":
        return {
            "role": "toolResult",
            "toolCallId": say.call_id,
            "toolName": say.tool,
            "content": say.blocks,
            "isError": True,
            "timestamp": timestamp,
        }
    return {"role": "user", "content": say.blocks, "timestamp": timestamp}


def apply_ops(ops: Iterable[WireOp], messages: Sequence[Message]) -> list[Message]:
    """The list that goes out, given all operations of it."""
    sent: list[Message] = []
    index = 0
    for name, value in ops:
        match name:
            case "say":
                sent.append(value)
            case "keep":
                sent += messages[index : index + value]
                index += value
            case "omit":
                index += value
            case "rewrite":
                sent.append(rewritten(messages[index], value))
                index += 1
    return sent


def rewritten(message: Message, blocks: list[Block]) -> Message:
    """A message of the host's with other content."""
    own = message.get("content")
    if isinstance(own, str):
        own = [{"type": "text", "text": own}]
    return {**message, "content": apply_recipe(blocks, own if isinstance(own, list) else [])}

"""From an assembled answer to edits of Pi's message list, and the same edits applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from foredeck.context.messages.items import Block
from foredeck.context.messages.parts import apply_recipe
from foredeck.context.messages.says import Say
from foredeck.context.state.request import Answer
from foredeck.hosts.pi.messages import Message
from foredeck.hosts.protocol import MessageEdits


def to_wire(answer: Answer, times: Sequence[int]) -> MessageEdits:
    """The answer to `context/assemble`, but for its status and notices.

    `times`: time stamps of the host's messages; an inserted message takes its neighbour's.
    """
    return {
        "call": answer.call,
        "from": answer.start,
        "edits": [[index, blocks] for index, blocks in answer.edits],
        "inserts": [
            [index, to_messages(inserts, times, index)]
            for index, inserts in sorted(answer.inserts.items())
        ],
        "drops": answer.drops,
        "marker": answer.marker or None,
    }


def to_messages(says: Sequence[Say], times: Sequence[int], index: int) -> list[Message]:
    """The inserted messages before message `index`, in Pi's shape."""
    return [_message(say, times, index) for say in says]


def _message(say: Say, times: Sequence[int], index: int) -> Message:
    timestamp = times[index - 1] if 0 < index <= len(times) else 0
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


def apply_edits(
    messages: Sequence[Message],
    edits: Mapping[int, list[Block]],
    inserts: Mapping[int, list[Message]],
    drops: Set[int],
) -> list[Message]:
    """The list that goes out: what the shim does with an answer, for replay and `show`."""
    result: list[Message] = []
    for index, message in enumerate(messages):
        result.extend(inserts.get(index, ()))
        if index in drops:
            continue
        recipe = edits.get(index)
        if recipe is None:
            result.append(message)
        else:
            result.append({**message, "content": apply_recipe(recipe, _own(message))})
    result.extend(inserts.get(len(messages), ()))
    return result


def _own(message: Message) -> list[Block]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []

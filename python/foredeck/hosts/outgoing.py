"""From the plan of a prompt to messages: as operations for the host, and applied to a list.

On the wire a plan is a list of operations that use up the host's messages in their order:
`["keep", n]` and `["omit", n]` the next n, `["rewrite", blocks]` the next one, and `["say",
message]` none, since that is a message of ours. An operation names no index, so none can be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from foredeck.context.messages.items import Block
from foredeck.context.messages.shape import Message
from foredeck.context.plan.ops import Op, Say, apply_recipe

WireOp = list[Any]


def to_ops(
    outgoing: Iterable[Say | Op], time_of: Callable[[int], int], start: int = 0
) -> list[WireOp]:
    """What goes out from message `start` on, for the wire. `time_of`: the time stamp of a message
    of the host's."""
    found: list[WireOp] = []
    index = start
    for each in outgoing:
        if isinstance(each, Say):
            # With the time of the message before it, and not the clock's: a prompt that goes out
            # once more has the same messages.
            found.append(["say", to_message(each, time_of(index - 1) if index else 0)])
            continue
        index += 1
        if each.blocks:
            found.append(["rewrite", each.blocks])
            continue
        name = "omit" if each.form == "omitted" else "keep"
        if found and found[-1][0] == name:
            found[-1][1] += 1
        else:
            found.append([name, 1])
    return found


def to_message(say: Say, timestamp: int = 0) -> Message:
    """A message of ours in the stored shape."""
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


def rewritten(message: Message, blocks: list[Block]) -> Message:
    """A message of the host's with other content."""
    own = message.get("content")
    if isinstance(own, str):
        own = [{"type": "text", "text": own}]
    return {**message, "content": apply_recipe(blocks, own if isinstance(own, list) else [])}


class Slot(NamedTuple):
    """What goes out before a message of the host's, and what becomes of that."""

    says: tuple[Message, ...] = ()
    blocks: list[Block] | None = None
    """What it is rewritten to."""
    is_omitted: bool = False


@dataclass(frozen=True, slots=True)
class SlotPlan:
    """What the answers have said so far, message by message; the last slot holds what goes out
    after all of them. A plan never changes: `cut` and `merged` give a new one."""

    # The shim has the same in `ts-shim/context/plan.ts`: both must come to the same list.

    slots: tuple[Slot, ...] = ()
    _edited: dict[int, tuple[list[Block], Message, Message]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """What rewriting has made, with the blocks and the message that it was made of."""

    def slot(self, index: int) -> Slot:
        """That of a message; what no answer knew goes out as it is."""
        return self.slots[index] if index < len(self.slots) else Slot()

    def omitted(self) -> list[int]:
        """The messages that are left out."""
        return [index for index, slot in enumerate(self.slots) if slot.is_omitted]

    def cut(self, limit: int, *, ending: bool = False) -> SlotPlan:
        """The plan of the messages before `limit`; with `ending` also what goes out after them."""
        end = (Slot(self.slot(limit).says),) if ending else ()
        return SlotPlan((*self._before(limit), *end), self._edited)

    def merged(self, start: int, ops: Iterable[WireOp]) -> SlotPlan:
        """The plan in force after an answer, which replaces all from message `start` on."""
        slots, says = self._before(start), list[Message]()
        for name, value in ops:
            match name:
                case "say":
                    says.append(value)
                case "rewrite":
                    slots.append(Slot(tuple(says), value))
                    says = []
                case _:
                    more = [Slot(is_omitted=name == "omit") for _ in range(value)]
                    slots += [more[0]._replace(says=tuple(says)), *more[1:]]
                    says = []
        return SlotPlan((*slots, Slot(tuple(says))), self._edited)

    def apply(self, messages: Sequence[Message]) -> list[Message]:
        """The list that goes out. A rewritten message is the same object in every list until it is
        rewritten anew."""
        # So that a reader of list after list can tell by identity what is new.
        sent: list[Message] = []
        for index, message in enumerate(messages):
            slot = self.slot(index)
            sent += slot.says
            if not slot.is_omitted:
                sent.append(self._shown(index, slot.blocks, message))
        return [*sent, *self.slot(len(messages)).says]

    def _before(self, limit: int) -> list[Slot]:
        return [self.slot(index) for index in range(limit)]

    def _shown(self, index: int, blocks: list[Block] | None, message: Message) -> Message:
        if blocks is None:
            return message
        known = self._edited.get(index)
        if known is None or known[0] is not blocks or known[1] is not message:
            known = self._edited[index] = (blocks, message, rewritten(message, blocks))
        return known[2]

"""A plan as operations for the host, which consume its messages in order."""

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
    """The wire form from message `start` on."""
    ops: list[WireOp] = []
    index = start
    for each in outgoing:
        if isinstance(each, Say):
            # With the time of the message before it, and not the clock's: a prompt that goes out
            # once more has the same messages.
            ops.append(["say", to_message(each, time_of(index - 1) if index else 0)])
            continue
        index += 1
        if each.blocks:
            ops.append(["rewrite", each.blocks])
            continue
        name = "omit" if each.form == "omitted" else "keep"
        if ops and ops[-1][0] == name:
            ops[-1][1] += 1
        else:
            ops.append([name, 1])
    return ops


def whole_until(outgoing: Iterable[Say | Op]) -> int:
    """The first message that does not go out with all that it says; their number if all do."""
    index = 0
    for each in outgoing:
        if isinstance(each, Say):
            if each.covers is not None:
                break
        elif each.folded or each.form not in ("host", "full", "note"):
            break
        else:
            index += 1
    return index


def to_message(say: Say, timestamp: int = 0) -> Message:
    """A say in the stored shape."""
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
    """A host message with other content."""
    own = message.get("content")
    if isinstance(own, str):
        own = [{"type": "text", "text": own}]
    return {**message, "content": apply_recipe(blocks, own if isinstance(own, list) else [])}


class Slot(NamedTuple):
    """What precedes a host message, and what becomes of it."""

    says: tuple[Message, ...] = ()
    blocks: list[Block] | None = None
    """Its new blocks."""
    is_omitted: bool = False


@dataclass(frozen=True, slots=True)
class SlotPlan:
    # The shim has the same in `ts-shim/context/plan.ts`: both must come to the same list.

    slots: tuple[Slot, ...] = ()
    _edited: dict[int, tuple[list[Block], Message, Message]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """Rewritten messages, with their blocks and originals."""

    def slot(self, index: int) -> Slot:
        """A message's slot; unknown ones go out unchanged."""
        return self.slots[index] if index < len(self.slots) else Slot()

    def omitted(self) -> list[int]:
        return [index for index, slot in enumerate(self.slots) if slot.is_omitted]

    def cut(self, limit: int, *, ending: bool = False) -> SlotPlan:
        """The plan before `limit`; with `ending` also what follows."""
        end = (Slot(self.slot(limit).says),) if ending else ()
        return SlotPlan((*self._before(limit), *end), self._edited)

    def merged(self, start: int, ops: Iterable[WireOp]) -> SlotPlan:
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
        # So that a reader of list after list can tell by identity what is new.
        outgoing: list[Message] = []
        for index, message in enumerate(messages):
            slot = self.slot(index)
            outgoing += slot.says
            if not slot.is_omitted:
                outgoing.append(self._shown(index, slot.blocks, message))
        return [*outgoing, *self.slot(len(messages)).says]

    def _before(self, limit: int) -> list[Slot]:
        return [self.slot(index) for index in range(limit)]

    def _shown(self, index: int, blocks: list[Block] | None, message: Message) -> Message:
        if blocks is None:
            return message
        cached = self._edited.get(index)
        if cached is None or cached[0] is not blocks or cached[1] is not message:
            cached = self._edited[index] = (blocks, message, rewritten(message, blocks))
        return cached[2]

"""How the host's list is changed on its way out: messages of ours in it, and messages left out.

What becomes of single messages that do go out is in their parts (`messages/parts.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.context.messages.items import Block, block_chars, blocks_chars
from foredeck.context.messages.repairs import Insert, Repairs
from foredeck.model.messages import pack


@dataclass(slots=True)
class ListEdits:
    """Messages of ours, by the index of the host's message that they go before, and drops."""

    inserts: dict[int, list[Insert]] = field(default_factory=dict)
    drops: set[int] = field(default_factory=set)
    """Messages of the host's that do not go out; `drop` adds to them."""
    _dropped_until: int = field(init=False, default=0, compare=False)
    """No drop stands at this index or after it: a long session has thousands, and most calls only
    ask for those of the newest messages."""

    _may_have_layout: bool = field(init=False, default=True, compare=False)

    def __post_init__(self) -> None:
        self._dropped_until = max(self.drops, default=-1) + 1

    def drop(self, indexes: Collection[int]) -> None:
        """Leave these messages out."""
        self.drops.update(indexes)
        self._dropped_until = max(self._dropped_until, max(indexes, default=-1) + 1)

    @property
    def messages(self) -> Iterator[Insert]:
        """All messages of ours."""
        return (message for ours in self.inserts.values() for message in ours)

    @property
    def chars(self) -> int:
        """Characters of all messages of ours, but for those that stand in for others: the parts
        of these count them."""
        counted = [m for ours in self.inserts.values() for m in ours if "from" not in m]
        return sum(block_chars(block) for ours in counted for block in ours["blocks"])

    @property
    def compacted(self) -> tuple[int, str | None]:
        """Up to which message a summary of ours stands for the chat, and the id of its object;
        0 where none does."""
        for ours in self.inserts.get(0, ()):
            if "until" in ours and "from" not in ours:
                return ours["until"], ours.get("object")
        return 0, None

    @property
    def stretches(self) -> dict[str, tuple[int, int]]:
        """By the id of the object that stands in for it, each stretch of messages for which
        something does: the first, and the one after the last."""
        spans = [m for ours in self.inserts.values() for m in ours if "from" in m]
        return {m["object"]: (m["from"], m["until"]) for m in spans if "object" in m}

    @property
    def runs(self) -> list[tuple[int, int]]:
        """Each run of folded calls for which a line stands, in the same way."""
        spans = [m for ours in self.inserts.values() for m in ours if "run" in m]
        return [(m["from"], m["until"]) for m in spans if m["run"]]

    @property
    def replaced(self) -> list[tuple[int, int]]:
        """All stretches for which something stands: an observation, or the line of a run."""
        return [*self.stretches.values(), *self.runs]

    @property
    def head(self) -> Insert | None:
        """The block before the chat; None where there is none."""
        return next((message for message in self.inserts.get(0, ()) if message.get("head")), None)

    @property
    def head_chars(self) -> int:
        """Characters of the block before the chat."""
        head = self.head
        return 0 if head is None else blocks_chars(head["blocks"])

    @property
    def has_layout_text(self) -> bool:
        """Whether a layout keeps something between the host's messages."""
        # Only `put_layout` puts any there, so what had none is not looked through at each call.
        if self._may_have_layout:
            self._may_have_layout = any(message.get("layout") for message in self.messages)
        return self._may_have_layout

    def since(self, start: int) -> ListEdits:
        """Those at or after an index."""
        inserts = {index: ours for index, ours in sorted(self.inserts.items()) if index >= start}
        if self._dropped_until <= start:
            return ListEdits(inserts)
        return ListEdits(inserts, {index for index in self.drops if index >= start})

    def packed(self, blobs: dict[str, bytes]) -> list[list[Any]]:
        """The messages of ours as a call record holds them; long texts join `blobs`."""
        return [[index, pack(ours, blobs)] for index, ours in sorted(self.inserts.items())]

    def insert(self, index: int, message: Insert, *, first: bool = False) -> None:
        """Put a message of ours before a message of the host's, after or before other ours."""
        ours = self.inserts.setdefault(index, [])
        ours.insert(0 if first else len(ours), message)

    def repair(self, repairs: Repairs, start: int) -> None:
        """Take over what a list needs from message `start` on, in place of earlier repairs.

        What has ended a turn stays, and so does what a layout put there: sealed reasoning may be
        bound to it. So does what stands in for messages, with these left out. The head stays, and
        stays first.
        """
        head = self.head
        # Nearly always there is nothing to do, and a long session has a thousand messages of ours.
        if repairs.inserts or max(self.inserts, default=-1) >= start:
            before, self.inserts = self.inserts, self._beside(repairs).inserts
            for index, ours in before.items():
                stay = [m for m in ours if index < start or _stands(m)]
                if stay:
                    self.inserts[index] = [*self.inserts.get(index, ()), *stay]
        if head is not None:
            self.put_head(head)
        self._cut_drops(start)
        self.drop(repairs.drops)

    def replace(self, first: int, until: int, at: int, message: Insert) -> None:
        """Let a message of ours stand, before message `at`, for the stretch from `first` on, in
        place of what stood there for parts of it."""
        for index in [index for index in self.inserts if first <= index < until]:
            ours = self.inserts.pop(index)
            stay = [m for m in ours if _outlasts(m, first, until, first_here=index == first)]
            if stay:
                self.inserts[index] = stay
        self.insert(at, {**message, "from": first, "until": until})

    def lacks(self, repairs: Repairs) -> set[int]:
        """Where a list needs repairs that are not made."""
        inserts = self._beside(repairs).inserts
        return (inserts.keys() - self.inserts.keys()) | (repairs.drops - self.drops)

    def _beside(self, repairs: Repairs) -> Repairs:
        """The repairs of what is not replaced: in a stretch that something stands for, no call
        waits for its result."""
        if not repairs.inserts:
            return repairs
        stretches, (compacted, _) = self.replaced, self.compacted
        # What a summary stands for goes message by message: pinned content stays in its place. A
        # result of ours stands right behind the last message of its call.
        inserts = {
            index: ours
            for index, ours in repairs.inserts.items()
            if not any(first < index < until for first, until in stretches)
            and not (index <= compacted and index - 1 in self.drops)
        }
        return Repairs(inserts, repairs.drops)

    def summarise(self, summary: Insert) -> None:
        """Let a summary begin the list, in place of all that goes before its `until`."""
        first = self.inserts.get(0, ())
        stay = [message for message in first if message.get("layout") or message.get("head")]
        until = summary["until"]
        self.inserts = {index: ours for index, ours in self.inserts.items() if index > until}
        self.inserts[0] = [*stay, summary]

    def put_head(self, head: Insert | None) -> None:
        """Let a block begin the list, in place of the one before; None takes that out."""
        others = [message for message in self.inserts.pop(0, ()) if not message.get("head")]
        ours = others if head is None else [head, *others]
        if ours:
            self.inserts[0] = ours

    def cut_layout(self, start: int, others: Collection[int] = ()) -> list[Block]:
        """Take out what a layout put at or after an index, and at the `others`; returns the blocks
        that stay before."""
        if not self.has_layout_text:
            self.inserts = dict(sorted(self.inserts.items()))
            return []
        stay = {
            index: ours
            if index < start and index not in others
            else [message for message in ours if not message.get("layout")]
            for index, ours in sorted(self.inserts.items())
        }
        self.inserts = {index: ours for index, ours in stay.items() if ours}
        held = [message for message in self.messages if message.get("layout")]
        return [block for message in held for block in message["blocks"]]

    def put_layout(self, inserts: Mapping[int, Sequence[Block]]) -> None:
        """Put in what a layout wants between the messages: first of all, but last elsewhere."""
        self._may_have_layout = self._may_have_layout or bool(inserts)
        for index, blocks in inserts.items():
            message = {"kind": "user", "blocks": blocks, "layout": True}
            self.insert(index, message, first=index == 0)

    def cut(self, inserts_from: int, drops_from: int) -> None:
        """Forget what a call that went out without us did not have."""
        self.inserts = {index: ours for index, ours in self.inserts.items() if index < inserts_from}
        self._cut_drops(drops_from)

    def _cut_drops(self, start: int) -> None:
        if self._dropped_until > start:
            self.drops = {index for index in self.drops if index < start}
            self._dropped_until = start


def _outlasts(message: Insert, first: int, until: int, *, first_here: bool) -> bool:
    """Whether a message of ours stays where something comes to stand for a stretch around it: what
    goes before the stretch does, and so does what stands for messages beyond it as well."""
    if "from" not in message:
        return first_here
    return not (first <= message["from"] and message["until"] <= until)


def _stands(message: Insert) -> bool:
    """Whether a message of ours stays where it is, whatever the list needs."""
    return bool(message.get("ends") or message.get("layout")) or "from" in message

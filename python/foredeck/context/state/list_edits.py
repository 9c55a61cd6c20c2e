"""How the host's list is changed on its way out: messages of ours in it, and messages left out.

What becomes of single messages that do go out is in their parts (`messages/parts.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    """Messages of the host's that do not go out."""

    @property
    def messages(self) -> Iterator[Insert]:
        """All messages of ours."""
        return (message for ours in self.inserts.values() for message in ours)

    @property
    def chars(self) -> int:
        """Characters of all messages of ours."""
        return sum(block_chars(block) for ours in self.messages for block in ours["blocks"])

    @property
    def compacted(self) -> tuple[int, str | None]:
        """Up to which message a summary of ours stands for the chat, and the id of its object;
        0 where none does."""
        for ours in self.inserts.get(0, ()):
            if "until" in ours:
                return ours["until"], ours.get("object")
        return 0, None

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
        return any(message.get("layout") for message in self.messages)

    def since(self, start: int) -> ListEdits:
        """Those at or after an index."""
        inserts = {index: ours for index, ours in sorted(self.inserts.items()) if index >= start}
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
        bound to it. The head stays, and stays first.
        """
        head = self.head
        before, self.inserts = self.inserts, repairs.inserts
        for index, ours in before.items():
            stay = [m for m in ours if index < start or m.get("ends") or m.get("layout")]
            if stay:
                self.inserts[index] = [*self.inserts.get(index, ()), *stay]
        if head is not None:
            self.put_head(head)
        self.drops = {index for index in self.drops if index < start} | repairs.drops

    def lacks(self, repairs: Repairs) -> set[int]:
        """Where a list needs repairs that are not made."""
        return (repairs.inserts.keys() - self.inserts.keys()) | (repairs.drops - self.drops)

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

    def cut_layout(self, start: int) -> list[Block]:
        """Take out what a layout put at or after an index; returns the blocks that stay before."""
        stay = {
            index: [m for m in ours if index < start or not m.get("layout")]
            for index, ours in sorted(self.inserts.items())
        }
        self.inserts = {index: ours for index, ours in stay.items() if ours}
        held = [message for message in self.messages if message.get("layout")]
        return [block for message in held for block in message["blocks"]]

    def put_layout(self, inserts: Mapping[int, Sequence[Block]]) -> None:
        """Put in what a layout wants between the messages: first of all, but last elsewhere."""
        for index, blocks in inserts.items():
            message = {"kind": "user", "blocks": blocks, "layout": True}
            self.insert(index, message, first=index == 0)

    def cut(self, inserts_from: int, drops_from: int) -> None:
        """Forget what a call that went out without us did not have."""
        self.inserts = {index: ours for index, ours in self.inserts.items() if index < inserts_from}
        self.drops = {index for index in self.drops if index < drops_from}

"""How the host's list is changed on its way out: messages of ours in it, and messages left out.

What becomes of single messages that do go out is in their parts (`messages/parts.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.context.messages.items import Block, blocks_chars
from foredeck.context.messages.repairs import Repairs
from foredeck.context.messages.says import LASTING, SPANNING, MessageSpan, Purpose, Say, pack_says


@dataclass(slots=True)
class ListEdits:
    """Messages of ours, by the index of the host's message that they go before, and drops."""

    inserts: dict[int, list[Say]] = field(default_factory=dict)
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
    def messages(self) -> Iterator[Say]:
        """All messages of ours."""
        return (message for ours in self.inserts.values() for message in ours)

    @property
    def chars(self) -> int:
        """Characters of all messages of ours, but for those that cover a span: the parts of its
        messages count them."""
        return sum(blocks_chars(m.blocks) for m in self.messages if m.purpose not in SPANNING)

    @property
    def compacted(self) -> tuple[int, str | None]:
        """Up to which message a summary of ours covers the chat, and the id of its object; 0 where
        there is none."""
        for ours in self.inserts.get(0, ()):
            if ours.purpose == "summary" and ours.covers is not None:
                return ours.covers.until, ours.object
        return 0, None

    @property
    def stretches(self) -> dict[str, MessageSpan]:
        """What observations and reflections cover, by their ids."""
        return {m.object: span for m, span in self._covers("observation") if m.object}

    @property
    def runs(self) -> list[MessageSpan]:
        """Each run of folded calls that a text covers."""
        return [span for _, span in self._covers("calls")]

    @property
    def replaced(self) -> list[MessageSpan]:
        """All spans that something covers: an observation, or the text of a run."""
        return [*self.stretches.values(), *self.runs]

    def _covers(self, purpose: Purpose) -> Iterator[tuple[Say, MessageSpan]]:
        for message in self.messages:
            if message.purpose == purpose and message.covers is not None:
                yield message, message.covers

    @property
    def head(self) -> Say | None:
        """The block before the chat; None where there is none."""
        return next((ours for ours in self.inserts.get(0, ()) if ours.purpose == "head"), None)

    @property
    def head_chars(self) -> int:
        """Characters of the block before the chat."""
        head = self.head
        return 0 if head is None else blocks_chars(head.blocks)

    @property
    def has_layout_text(self) -> bool:
        """Whether a layout keeps something between the host's messages."""
        # Only `put_layout` puts any there, so what had none is not looked through at each call.
        if self._may_have_layout:
            self._may_have_layout = any(ours.purpose == "layout" for ours in self.messages)
        return self._may_have_layout

    def since(self, start: int) -> ListEdits:
        """Those at or after an index."""
        inserts = {index: ours for index, ours in sorted(self.inserts.items()) if index >= start}
        if self._dropped_until <= start:
            return ListEdits(inserts)
        return ListEdits(inserts, {index for index in self.drops if index >= start})

    def packed(self, blobs: dict[str, bytes]) -> list[list[Any]]:
        """The messages of ours as a call record holds them; long texts join `blobs`."""
        return [[index, pack_says(ours, blobs)] for index, ours in sorted(self.inserts.items())]

    def insert(self, index: int, message: Say, *, first: bool = False) -> None:
        """Put a message of ours before a message of the host's, after or before other ours."""
        ours = self.inserts.setdefault(index, [])
        ours.insert(0 if first else len(ours), message)

    def repair(self, repairs: Repairs, start: int) -> None:
        """Take over what a list needs from message `start` on, in place of earlier repairs.

        What is `LASTING` stays, and so does the head, first of all.
        """
        head = self.head
        # Nearly always there is nothing to do, and a long session has a thousand messages of ours.
        if repairs.inserts or max(self.inserts, default=-1) >= start:
            before, self.inserts = self.inserts, self._beside(repairs).inserts
            for index, ours in before.items():
                stay = [m for m in ours if index < start or m.purpose in LASTING]
                if stay:
                    self.inserts[index] = [*self.inserts.get(index, ()), *stay]
        if head is not None:
            self.put_head(head)
        self._cut_drops(start)
        self.drop(repairs.drops)

    def cover(self, message: Say, at: int) -> None:
        """Put a message of ours before message `at`, in place of all that covers parts of what it
        covers."""
        span = message.covers
        assert span is not None  # or it would cover nothing
        for index in [index for index in self.inserts if span.first <= index < span.until]:
            ours = self.inserts.pop(index)
            stay = [m for m in ours if _outlasts(m, span, first_here=index == span.first)]
            if stay:
                self.inserts[index] = stay
        self.insert(at, message)

    def lacks(self, repairs: Repairs) -> set[int]:
        """Where a list needs repairs that are not made."""
        inserts = self._beside(repairs).inserts
        return (inserts.keys() - self.inserts.keys()) | (repairs.drops - self.drops)

    def _beside(self, repairs: Repairs) -> Repairs:
        """The repairs of what nothing covers: in a span that is covered, no call waits for its
        result."""
        if not repairs.inserts:
            return repairs
        stretches, (compacted, _) = self.replaced, self.compacted
        # What a summary covers goes message by message: pinned content stays in its place. A
        # result of ours stands right behind the last message of its call.
        inserts = {
            index: ours
            for index, ours in repairs.inserts.items()
            if not any(first < index < until for first, until in stretches)
            and not (index <= compacted and index - 1 in self.drops)
        }
        return Repairs(inserts, repairs.drops)

    def summarise(self, summary: Say) -> None:
        """Let a summary begin the list, in place of all that goes before the end of its span."""
        span = summary.covers
        assert span is not None  # or it would sum up nothing
        stay = [ours for ours in self.inserts.get(0, ()) if ours.purpose in ("layout", "head")]
        self.inserts = {i: ours for i, ours in self.inserts.items() if i > span.until}
        self.inserts[0] = [*stay, summary]

    def put_head(self, head: Say | None) -> None:
        """Let a block begin the list, in place of the one before; None takes that out."""
        others = [ours for ours in self.inserts.pop(0, ()) if ours.purpose != "head"]
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
            else [message for message in ours if message.purpose != "layout"]
            for index, ours in sorted(self.inserts.items())
        }
        self.inserts = {index: ours for index, ours in stay.items() if ours}
        held = [message for message in self.messages if message.purpose == "layout"]
        return [block for message in held for block in message.blocks]

    def put_layout(self, inserts: Mapping[int, Sequence[Block]]) -> None:
        """Put in what a layout wants between the messages: first of all, but last elsewhere."""
        self._may_have_layout = self._may_have_layout or bool(inserts)
        for index, blocks in inserts.items():
            self.insert(index, Say("layout", list(blocks)), first=index == 0)

    def cut(self, inserts_from: int, drops_from: int) -> None:
        """Forget what a call that went out without us did not have."""
        self.inserts = {index: ours for index, ours in self.inserts.items() if index < inserts_from}
        self._cut_drops(drops_from)

    def _cut_drops(self, start: int) -> None:
        if self._dropped_until > start:
            self.drops = {index for index in self.drops if index < start}
            self._dropped_until = start


def _outlasts(message: Say, span: MessageSpan, *, first_here: bool) -> bool:
    """Whether a message of ours stays where something comes to cover the span around it: what goes
    before the span does, and so does what covers messages beyond it as well."""
    if message.purpose not in SPANNING or message.covers is None:
        return first_here
    return not span.holds(message.covers)

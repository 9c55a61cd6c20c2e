from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from foredeck.context.messages.items import ROOT_TIP, Block, Item, ToolUse, blocks_chars, next_tip
from foredeck.context.plan.ops import (
    LASTING,
    SPANNING,
    MessageSpan,
    Op,
    Say,
    Shown,
    apply_recipe,
    as_host,
    omit,
    recipe_chars,
)
from foredeck.context.plan.wires import Repairs, SealRule
from foredeck.model.messages import answered_by, newest_answer
from foredeck.model.own_tools import CONTEXT_TOOLS


@dataclass(slots=True)
class Plan:
    """`ops[i]` is for `items[i]`, `says[i]` goes before it. Changed only by its methods.

    Messages are named by index, objects by handle.
    """

    items: list[Item] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    """Message index by address."""
    says: dict[int, list[Say]] = field(default_factory=dict)
    """By the index of the next host message."""
    chars: list[int] = field(default_factory=list)
    """As sent; the last of a covered span counts the cover."""
    tips: list[str] = field(default_factory=list)
    tip: str = ROOT_TIP
    """Rolling hash; `tips` holds the one after each message."""
    seals: SealRule = field(default_factory=SealRule)
    turn_ends: bool = False
    """A rebase ends the turn: its reasoning is left out, so it binds nothing."""
    chars_host: int = 0
    """Characters as the host has it."""
    chars_own: int = 0
    chars_sent: int = 0
    """Characters as sent, covers included."""
    turn: int = 0
    results_in_turn: dict[int, int] = field(default_factory=dict)
    """Per user turn, without `CONTEXT_TOOLS`."""
    holders: dict[int, list[int]] = field(default_factory=dict)
    """Messages that show an object's content, by handle."""
    texts: dict[str, set[int]] = field(default_factory=dict)
    carried: Counter[int] = field(default_factory=Counter)
    referred_at: dict[int, int] = field(default_factory=dict)
    """The newest message that refers to another's content."""
    written: list[int] = field(default_factory=list)
    """Messages whose operation was replaced, in order."""
    attributed: list[int] = field(default_factory=list)
    _sums: list[int] = field(default_factory=lambda: [0])
    """Characters before each message; truncated where one changes."""
    _pictured: list[int] = field(default_factory=list)
    """Messages with images."""
    _calls: list[ToolUse] = field(default_factory=list)
    _may_have_layout: bool = True

    def __len__(self) -> int:
        return len(self.items)

    # ------------------------------------------------ the host's messages

    def append(self, item: Item, op: Op | None = None, tip: str = "") -> None:
        """Appends a message, sent as it is.

        `op`: from the call records; `tip`: the hash with the message, if known.
        """
        if item.kind == "user":
            self.turn += 1
        if item.kind == "assistant":
            self._calls = list(item.calls)
        if item.kind == "result":
            at = answered_by([call.id for call in self._calls], item.call_id)
            if at is not None:
                item.arguments = self._calls[at].arguments
                self._calls.append(self._calls.pop(at))
        item.turn = self.turn
        item.results_before = self.results_in_turn.get(self.turn, 0)
        if item.kind == "result" and item.tool not in CONTEXT_TOOLS:
            self.results_in_turn[self.turn] = item.results_before + 1
        self.tip = tip or next_tip(self.tip, item.key)
        self.tips.append(self.tip)
        index = len(self.items)
        self.items.append(item)
        self.places[item.key.address] = index
        if item.has_image:
            self._pictured.append(index)
        self.chars_host += item.chars
        self.chars_own += item.own_chars
        self.ops.append(op or Op())
        self.chars.append(recipe_chars(self.recipe(index), item))
        self.chars_sent += self.chars[index]
        if op is not None:
            self._remember(index)

    def write(self, index: int, op: Op) -> None:
        """Replaces a message's operation."""
        self._replace(index, op)
        self.written.append(index)

    def attribute(self, index: int, subject: int, version: int) -> None:
        op = self.ops[index]
        self._replace(index, replace(op, shown=Shown(subject, version, op.text_hash)))
        self.attributed.append(index)

    def as_host(self, start: int, says_from: int) -> None:
        """Resets messages from `start`, and drops says from `says_from`."""
        self.says = {index: ours for index, ours in self.says.items() if index < says_from}
        for index in range(start, len(self.ops)):
            op = as_host(self.ops[index])
            if op != self.ops[index]:
                self.write(index, op)
        self.find_references()

    def is_omitted(self, index: int) -> bool:
        return 0 <= index < len(self.ops) and self.ops[index].form == "omitted"

    def omitted(self, start: int = 0) -> list[int]:
        """Omitted messages from `start` on."""
        return [i for i in range(start, len(self.ops)) if self.ops[i].form == "omitted"]

    def outgoing(self, start: int) -> Iterator[Say | Op]:
        for index in range(start, len(self.ops)):
            yield from self.says.get(index, ())
            yield self.ops[index]
        yield from self.says.get(len(self.ops), ())

    def recipe(self, index: int) -> list[Block] | None:
        """The blocks that go out for a message; None for the host's own."""
        cover = self.cover_at(index)
        return self.ops[index].blocks if cover is None else cover.blocks

    # ------------------------------------------------ messages of ours

    def say(self, index: int, say: Say, *, first: bool = False) -> None:
        """Puts a say before a host message, after other says or `first`."""
        ours = self.says.setdefault(index, [])
        ours.insert(0 if first else len(ours), say)

    def cover(self, say: Say, gone: Sequence[int]) -> None:
        """Omits the messages `gone` and puts a say where the last was, over covers within its
        span."""
        span = say.covers
        assert span is not None  # or it would cover nothing
        inside = [index for index in self.says if span.first <= index < span.until]
        for index in inside:
            ours = self.says.pop(index)
            stay = [m for m in ours if _outlasts(m, span, first_here=index == span.first)]
            if stay:
                self.says[index] = stay
        # What covered parts is gone, whose characters the last message of each part has counted.
        self._count(inside)
        self.say(gone[-1], say)
        for index in gone:
            self.write(index, omit(self.ops[index].shown))

    def summarise(self, summary: Say) -> None:
        span = summary.covers
        assert span is not None  # or it would sum up nothing
        stay = [ours for ours in self.says.get(0, ()) if ours.purpose in ("layout", "head")]
        before = [index for index in self.says if index <= span.until]
        self.says = {i: ours for i, ours in self.says.items() if i > span.until}
        self._count(before)
        self.says[0] = [*stay, summary]

    def put_head(self, head: Say | None) -> None:
        """Replaces the previous head; None removes it."""
        others = [ours for ours in self.says.pop(0, ()) if ours.purpose != "head"]
        ours = others if head is None else [head, *others]
        if ours:
            self.says[0] = ours

    def repair(self, repairs: Repairs, start: int) -> None:
        """Repairs from `start` on, in place of earlier ones; `LASTING` says stay."""
        # Nearly always there is nothing to do, and a long session has a thousand messages of ours.
        if not repairs.says and max(self.says, default=-1) < start:
            return
        head, before, self.says = self.head, self.says, self._beside(repairs).says
        for index, ours in before.items():
            stay = [m for m in ours if index < start or m.purpose in LASTING]
            if stay:
                self.says[index] = [*self.says.get(index, ()), *stay]
        if head is not None:
            self.put_head(head)

    def lacks(self, repairs: Repairs) -> set[int]:
        """Indexes where repairs are missing."""
        says = self._beside(repairs).says
        lost = {index for index in repairs.omitted if not self.is_omitted(index)}
        return (says.keys() - self.says.keys()) | lost

    def cut_layout(self, start: int, others: Collection[int] = ()) -> list[Block]:
        """Removes layout text at or after an index and at `others`; returns the blocks that
        stay."""
        if not self.has_layout_text:
            return []
        stay = {
            index: ours
            if index < start and index not in others
            else [message for message in ours if message.purpose != "layout"]
            for index, ours in sorted(self.says.items())
        }
        self.says = {index: ours for index, ours in stay.items() if ours}
        layout_says = [message for message in self.our_messages if message.purpose == "layout"]
        return [block for message in layout_says for block in message.blocks]

    def put_layout(self, says: Mapping[int, Sequence[Block]]) -> None:
        self._may_have_layout = self._may_have_layout or bool(says)
        for index, blocks in says.items():
            self.say(index, Say("layout", list(blocks)), first=index == 0)

    @property
    def our_messages(self) -> Iterator[Say]:
        return (message for ours in self.says.values() for message in ours)

    def cover_at(self, index: int) -> Say | None:
        """The say whose characters an omitted message counts."""
        if not self.is_omitted(index):
            return None
        return next((m for m in self.says.get(index, ()) if m.purpose in SPANNING), None)

    @property
    def chars_said(self) -> int:
        """Characters of all says except covers of spans, which `chars` counts."""
        return sum(blocks_chars(m.blocks) for m in self.our_messages if m.purpose not in SPANNING)

    @property
    def chars_covering(self) -> int:
        return sum(blocks_chars(m.blocks) for m in self.our_messages if m.purpose in SPANNING)

    @property
    def compacted(self) -> tuple[int, str | None]:
        for ours in self.says.get(0, ()):
            if ours.purpose == "summary" and ours.covers is not None:
                return ours.covers.until, ours.object
        return 0, None

    @property
    def observed(self) -> dict[str, MessageSpan]:
        """Spans by the observation or reflection that covers them."""
        says = (m for m in self.our_messages if m.purpose == "observation")
        return {m.object: m.covers for m in says if m.object and m.covers}

    @property
    def runs(self) -> list[MessageSpan]:
        return [m.covers for m in self.our_messages if m.purpose == "calls" and m.covers]

    @property
    def covered(self) -> list[MessageSpan]:
        """Spans covered by an observation or a run's text."""
        return [m.covers for m in self.our_messages if m.purpose in SPANNING and m.covers]

    @property
    def head(self) -> Say | None:
        return next((ours for ours in self.says.get(0, ()) if ours.purpose == "head"), None)

    @property
    def head_chars(self) -> int:
        head = self.head
        return 0 if head is None else blocks_chars(head.blocks)

    @property
    def has_layout_text(self) -> bool:
        # Only `put_layout` puts any there, so what had none is not searched at each call.
        if self._may_have_layout:
            self._may_have_layout = any(ours.purpose == "layout" for ours in self.our_messages)
        return self._may_have_layout

    # ------------------------------------------------ what can be read

    def chars_before(self, index: int) -> int:
        """Characters sent before `index`."""
        sums = self._sums
        for chars in self.chars[len(sums) - 1 : index]:
            sums.append(sums[-1] + chars)
        return sums[index]

    def images(self) -> Iterator[Block]:
        """The images that go out."""
        for index in self._pictured:
            item = self.items[index]
            if item.unsent or item.kind == "opaque":
                continue
            for block in apply_recipe(self.ops[index].blocks, item.blocks):
                if block.get("type") == "image":
                    yield block

    def newest_holder(self, ordinal: int) -> int | None:
        holders = self.holders.get(ordinal)
        return holders[-1] if holders else None

    def folded_objects(self, active: Iterable[int]) -> int:
        """Objects that no message shows, without the `active` ones."""
        # Whatever is shown is carried. A long session has thousands of objects and few active ones.
        waiting = sum(n in self.carried and n not in self.holders for n in active)
        return len(self.carried) - len(self.holders) - waiting

    def find_references(self) -> None:
        """Builds `referred_at` from the operations."""
        self.referred_at = {
            op.base: index for index, op in enumerate(self.ops) if op.base is not None
        }

    def last_use(self, index: int) -> int:
        """The newest message that gave or referred to this content."""
        return self.referred_at.get(index, index)

    def last_assistant(self) -> int:
        """The newest not aborted, or -1; results after it are in flight."""
        return newest_answer(self.items, len(self.items), sent=True)

    @property
    def newest_question(self) -> int:
        """The user's newest message, or -1."""
        items = self.items
        return next((i for i in range(len(items) - 1, -1, -1) if items[i].kind == "user"), -1)

    def _replace(self, index: int, op: Op) -> None:
        self._forget(index)
        self.ops[index] = op
        self._count((index,))
        self._remember(index)

    def _count(self, indexes: Iterable[int]) -> None:
        for index in indexes:
            if index < len(self.ops):
                chars = recipe_chars(self.recipe(index), self.items[index])
                self.chars_sent += chars - self.chars[index]
                self.chars[index] = chars
                del self._sums[index + 1 :]

    def _beside(self, repairs: Repairs) -> Repairs:
        if not repairs.says:
            return repairs
        covered, (compacted, _) = self.covered, self.compacted
        # What a summary covers goes message by message: pinned content stays in its place. A
        # result of ours comes right behind the last message of its call.
        says = {
            index: ours
            for index, ours in repairs.says.items()
            if not any(first < index < until for first, until in covered)
            and not (index <= compacted and self.is_omitted(index - 1))
        }
        return Repairs(says, repairs.omitted)

    def _remember(self, index: int) -> None:
        op = self.ops[index]
        if op.base is not None:
            self.referred_at[op.base] = max(index, self.referred_at.get(op.base, op.base))
        if op.subject is None:
            return
        if op.carries:
            self.carried[op.subject] += 1
        if op.shows:
            # In order, though a rebase renders in any: `newest_holder` takes the last one.
            insort(self.holders.setdefault(op.subject, []), index)
            if op.text_hash is not None:
                self.texts.setdefault(op.text_hash, set()).add(index)

    def _forget(self, index: int) -> None:
        op = self.ops[index]
        if op.base is not None and self.referred_at.get(op.base) == index:
            self._forget_reference(op.base, index)
        if op.subject is None:
            return
        if op.carries:
            self.carried[op.subject] -= 1
            if not self.carried[op.subject]:
                del self.carried[op.subject]
        if op.shows:
            self.holders[op.subject].remove(index)
            if not self.holders[op.subject]:
                del self.holders[op.subject]
            if op.text_hash is not None:
                self.texts[op.text_hash].discard(index)
                if not self.texts[op.text_hash]:
                    del self.texts[op.text_hash]

    def _forget_reference(self, base: int, index: int) -> None:
        others = (i for i in range(index - 1, base, -1) if self.ops[i].base == base)
        newest = next(others, None)
        if newest is None:
            del self.referred_at[base]
        else:
            self.referred_at[base] = newest


def _outlasts(message: Say, span: MessageSpan, *, first_here: bool) -> bool:
    if message.purpose not in SPANNING or message.covers is None:
        return first_here
    return not span.holds(message.covers)

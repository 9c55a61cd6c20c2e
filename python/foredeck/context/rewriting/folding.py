"""Folds results, pieces and signed reasoning, never before `first_mutable`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import is_
from typing import NamedTuple

from foredeck.context.compactions import SummaryRequest, compact, turn_number
from foredeck.context.digests import digest, unheld_names
from foredeck.context.layouts import Layout
from foredeck.context.messages.items import Item
from foredeck.context.plan.ops import REASONING, Op, PieceRef, recipe_chars
from foredeck.context.policies.pieces import LONG_TEXTS, Piece, folded_blocks, pieces_of
from foredeck.context.rebase import WaterMarks, first_mutable, may_change
from foredeck.context.rendering import (
    RenderContext,
    contains_lines,
    folded,
    is_only_receipt,
    render_dependents,
    shown_text,
)
from foredeck.context.state.objects import user_object
from foredeck.context.wording import folded_answer, folded_paste
from foredeck.model.names import identifiers
from foredeck.model.observations import compaction_id
from foredeck.sources.tool_calls import parse_read_range

RECEIPT_SAVING = 40
"""Least characters saved on a receipt."""


class Fold(NamedTuple):
    """A result, or a piece of a message, that folds where it is."""

    ref: PieceRef
    saving: int
    """Characters saved."""


@dataclass(slots=True)
class FoldFinder:
    """What may fold in one plan, cached per operation."""

    # It is asked at every call about every message of a session. Operations never change, and no
    # other plan has them: the very same object means the very same answer.

    _savings: dict[int, tuple[Op, int]] = field(default_factory=dict)
    """By message: its operation, and characters saved."""
    _pieces: dict[int, tuple[Op, frozenset[int], list[Fold]]] = field(default_factory=dict)
    """By message: its operation, the requested pieces, and those worth folding."""
    _superseded: dict[int, tuple[Sequence[Op], frozenset[int]]] = field(default_factory=dict)
    """By object: the operations that show it, and the superseded messages."""

    def find(self, context: RenderContext, foldable: Collection[PieceRef] = ()) -> list[Fold]:
        """What may go, in order: released, deactivated, superseded, or `foldable`."""
        plan, sets = context.plan, context.sets
        flight = plan.last_assistant()
        by_policy = {
            ref.message
            for ref in foldable
            if not ref.slot and (op := plan.ops[ref.message]).shows and op.subject not in sets.pins
        }
        folds = [
            Fold(PieceRef(index), self.saving(context, index))
            for index in by_policy.union(self._released(context))
            if self.may_fold(context, index, flight)
        ]
        pieces = {ref for ref in foldable if ref.slot} | set(_released_pastes(context, flight))
        return sorted([*folds, *self._worthwhile_pieces(context, pieces)])

    def results(self, context: RenderContext) -> list[int]:
        """Results long enough to fold, neither pinned nor in flight; least recently used first."""
        plan = context.plan
        flight = plan.last_assistant()
        results = [
            index
            for ordinal, indexes in plan.holders.items()
            if ordinal not in context.sets.pins
            for index in indexes
            if plan.items[index].kind == "result" and self.may_fold(context, index, flight)
        ]
        return sorted(results, key=lambda i: (plan.last_use(i), i))

    def may_fold(self, context: RenderContext, index: int, flight: int) -> bool:
        """Whether folding pays and takes nothing from results in flight, those after `flight`."""
        if context.plan.last_use(index) > flight:
            return False
        least = context.min_saving_chars
        if is_only_receipt(context.plan, index):
            # Each is small, but there is one for each edit, and it says nothing new.
            least = min(least, RECEIPT_SAVING)
        return self.saving(context, index) >= least

    def saving(self, context: RenderContext, index: int) -> int:
        """Characters saved by folding a result, with the longest digest."""
        plan = context.plan
        op, item = plan.ops[index], plan.items[index]
        cached = self._savings.get(index)
        if cached is None or cached[0] is not op:
            after = recipe_chars(folded(context, index).blocks, item)
            if not is_only_receipt(plan, index):
                after += context.digests.limit(shown_text(plan, index))
            cached = self._savings[index] = op, plan.chars[index] - after
        return cached[1]

    def all_chars(self, context: RenderContext) -> int:
        """Characters saved if everything folds that may now."""
        allowed = may_change(context.plan, self.results(context))
        return sum(self.saving(context, index) for index in allowed)

    def most_chars(
        self, context: RenderContext, savings: Mapping[PieceRef, int]
    ) -> tuple[int, bool]:
        """Characters that could leave now, and whether sealed reasoning holds some back."""
        allowed = may_change(context.plan, {ref.message for ref in savings})
        by_ref = {ref: chars for ref, chars in savings.items() if ref.message in allowed}
        is_bound = len(by_ref) < len(savings)
        free = first_mutable(context.plan)
        for index in self.results(context):
            if index < free:
                is_bound = True
                break
            by_ref.setdefault(PieceRef(index), self.saving(context, index))
        return sum(by_ref.values()), is_bound

    def _released(self, context: RenderContext) -> Iterator[int]:
        plan, sets = context.plan, context.sets
        for ordinal, indexes in plan.holders.items():
            old = self._superseded_of(context, ordinal) if len(indexes) > 1 else ()
            for index in indexes:
                if plan.items[index].kind != "result":
                    continue
                unwanted = index not in context.branch.kept or ordinal not in sets.active
                if index in old or (unwanted and ordinal not in sets.pins):
                    yield index

    def _worthwhile_pieces(
        self, context: RenderContext, refs: Collection[PieceRef]
    ) -> Iterator[Fold]:
        plan = context.plan
        for index, group in groupby(sorted(refs), key=lambda ref: ref.message):
            op, slots = plan.ops[index], frozenset(ref.slot for ref in group)
            cached = self._pieces.get(index)
            if cached is None or cached[0] is not op or cached[1] != slots:
                cached = op, slots, find_pieces(context, index, slots)
                # None are worth it while a call has no handle yet, which it may get.
                if cached[2]:
                    self._pieces[index] = cached
            yield from cached[2]

    def _superseded_of(self, context: RenderContext, ordinal: int) -> frozenset[int]:
        """Messages that a newer whole copy covers, unless a visible difference refers to them."""
        plan = context.plan
        ops = [plan.ops[index] for index in plan.holders[ordinal]]
        before, superseded = self._superseded.get(ordinal, ((), frozenset()))
        if len(before) != len(ops) or not all(map(is_, before, ops)):
            indexes = plan.holders[ordinal]
            old = {
                index
                for position, index in enumerate(indexes)
                if any(_covers(context, newer, index) for newer in indexes[position + 1 :])
            }
            others = (plan.ops[index] for index in indexes if index not in old)
            superseded = frozenset(old - {op.base for op in others if op.form == "diff"})
            self._superseded[ordinal] = ops, superseded
        return superseded


def find_pieces(context: RenderContext, index: int, slots: Collection[int]) -> list[Fold]:
    """Those of a message's pieces worth folding."""
    item, op = context.plan.items[index], context.plan.ops[index]
    if folded_blocks(item, {*slots, *op.folded}, context.label) is None:
        return []
    folds = (
        Fold(PieceRef(index, piece.slot), piece.saving - _digest_chars(context, piece))
        for piece in pieces_of(item)
        if piece.slot in slots
    )
    return [fold for fold in folds if fold.saving >= context.min_saving_chars]


def _digest_chars(context: RenderContext, piece: Piece) -> int:
    is_text = piece.kind in ("message", "answer")
    return context.digests.limit(piece.text) if is_text else 0


def _covers(context: RenderContext, newer: int, older: int) -> bool:
    """Whether the newer shows at least the older's range."""
    new, old = context.plan.items[newer], context.plan.items[older]
    op, other = context.plan.ops[newer], context.plan.ops[older]
    if op.form == "diff" or (op.version or 0) < (other.version or 0):
        return False
    if op.text_hash is None:
        # The newer one is cut short.
        return False
    after, before = (
        parse_read_range(item.arguments, shown_text(context.plan, index))
        for item, index in ((new, newer), (old, older))
    )
    if after is None or before is None:
        return after is before
    lines = after.first <= before.first and before.last <= after.last
    return after.complete or lines or contains_lines(after.text, before.text)


def _released_pastes(context: RenderContext, flight: int) -> Iterator[PieceRef]:
    plan, sets = context.plan, context.sets
    for ordinal, indexes in plan.holders.items():
        if ordinal in sets.active or ordinal in sets.pins:
            continue
        for index in indexes:
            item = plan.items[index]
            earlier = item.turn < plan.turn and plan.last_use(index) <= flight
            if item.kind == "user" and earlier and plan.ops[index].blocks is None:
                yield from (PieceRef(index, p.slot) for p in pieces_of(item) if p.kind == "message")


def fold_results(context: RenderContext, layout: Layout, indexes: Collection[int]) -> set[int]:
    """Folds results as far as they may change; returns those."""
    folded = may_change(context.plan, indexes)
    # All at once: a digest names only what can be read nowhere else once all have gone.
    layout.fold(context, folded)
    return folded


def fold_pieces(context: RenderContext, refs: Collection[PieceRef]) -> set[int]:
    allowed = may_change(context.plan, {ref.message for ref in refs})
    folded = _fold_pieces(context, [ref for ref in refs if ref.message in allowed])
    render_dependents(context, {i for i in folded if context.plan.items[i].kind == "user"})
    return folded


def fold_pastes(context: RenderContext, refs: Collection[PieceRef]) -> None:
    allowed = may_change(context.plan, {ref.message for ref in refs})
    items = context.plan.items
    pastes = [ref for ref in refs if ref.message in allowed and items[ref.message].kind == "user"]
    for index in _fold_pieces(context, pastes):
        context.branch.release(index)


def fold_down(
    context: RenderContext, layout: Layout, results: Iterable[int], fits: Callable[[], bool]
) -> set[int]:
    """One by one until the prompt fits; returns the folded messages."""
    folded: set[int] = set()
    free = first_mutable(context.plan)
    for index in results:
        # What is older must stay, so what is newer, and more likely needed, stays too.
        if index < free or fits():
            break
        layout.fold(context, {index})
        folded.add(index)
        context.branch.release(index)
    return folded


def strip_reasoning(context: RenderContext, first: int) -> None:
    """Omits signed reasoning bound to bytes that change at `first`."""
    plan = context.plan
    # A provider that checks takes none of it any more, in whichever turn it is, nor what comes
    # after a block that was left out: so all of it goes, and what comes before stays. The turn
    # under way has none there (`first_mutable`), or a message that ends it follows its results.
    for index in range(first, len(plan)):
        item, op = plan.items[index], plan.ops[index]
        if not plan.seals.binds(item) or op.form not in ("host", "folded"):
            continue
        lost = any(p.slot in op.folded for p in pieces_of(item) if p.kind == "thinking")
        if REASONING in op.folded or (index == first and not lost):
            continue
        fold_slots(context, index, {REASONING, *op.folded})


def fold_slots(context: RenderContext, index: int, slots: set[int]) -> bool:
    """Whether the message can go without these pieces; then it does."""
    item = context.plan.items[index]
    blocks = folded_blocks(item, slots, context.label, partial(_fold_text, context))
    if blocks is None:
        return False
    content = context.plan.ops[index].shown
    context.plan.write(index, Op("folded", blocks, content, folded=tuple(sorted(slots))))
    return True


def objects_to_shed(
    context: RenderContext,
    chars_of: Callable[[int], int],
    *,
    fixed_chars: int,
    window: int | None,
    marks: WaterMarks,
) -> set[int]:
    """Handles to release, least recently used first, to stay below the marks; changes nothing.

    `chars_of`: characters of an active object's content, asked only if one may go.
    """
    if not window:
        return set()
    plan, sets = context.plan, context.sets
    flight, newest = plan.last_assistant(), dict[int, tuple[int, int]]()
    # An object that several messages carry is as recently used as the newest of them.
    for index, ordinal in context.branch.kept.items():
        newest[ordinal] = max((plan.last_use(index), index), newest.get(ordinal, (-1, -1)))
    going = [
        ordinal
        for ordinal in sorted(newest, key=newest.__getitem__)
        if newest[ordinal][1] <= flight and ordinal not in sets.pins
    ]
    if not going:
        return set()
    sizes = {ordinal: chars_of(ordinal) for ordinal in sets.active}
    chars = plan.chars_sent + fixed_chars + sum(sizes.values())
    if context.gauge.tokens(chars) <= marks.high * window:
        return set()
    gone: set[int] = set()
    for ordinal in going:
        if context.gauge.tokens(chars) <= marks.low * window:
            break
        gone.add(ordinal)
        chars -= sizes.get(ordinal, 0)
    return gone


def _fold_pieces(context: RenderContext, refs: list[PieceRef]) -> set[int]:
    pieces = sorted(ref for ref in refs if ref.slot > 0)
    folded: set[int] = set()
    for index, group in groupby(pieces, key=lambda ref: ref.message):
        slots = {ref.slot for ref in group} | {*context.plan.ops[index].folded}
        if fold_slots(context, index, slots):
            folded.add(index)
    return folded


def _fold_text(context: RenderContext, item: Item, text: str) -> str:
    """Beginning and end of a text, with how to get the rest."""
    if item.kind == "user":
        return _folded_paste(context, item, text)
    ends = LONG_TEXTS[item.kind][1]
    ordinal, turn = _object_of(context, item)
    first, middle, last = text[:ends], text[ends:-ends], text[-ends:]
    names = _names_said(context, item, middle, {*identifiers(first), *identifiers(last)})
    return first + folded_answer(ordinal, turn, len(middle)) + names + last


def _folded_paste(context: RenderContext, item: Item, text: str) -> str:
    """First and last lines of a paste, a reference, and a digest."""
    start, end = _middle(text, LONG_TEXTS[item.kind][1])
    first, middle, last = text[:start], text[start:end], text[end:]
    lines = text.count("\n", 0, start) + 1, text.count("\n", 0, end)
    ordinal = user_object(context.objects, text).ordinal
    reference = folded_paste(ordinal, len(middle), lines if middle.endswith("\n") else None)
    facts = _digest(context, item, middle, {*identifiers(first), *identifiers(last)})
    description = context.said_of(ordinal)
    between = [reference, *([description] if description else []), *([facts] if facts else [])]
    return "\n".join([first.removesuffix("\n"), *between, last])


def _middle(text: str, ends: int) -> tuple[int, int]:
    start = text.rfind("\n", 0, ends) + 1
    if start < ends // 2:
        start = ends
    end = text.find("\n", len(text) - ends) + 1
    if not 0 < end <= len(text) - ends // 2:
        end = len(text) - ends
    return start, end


def _digest(context: RenderContext, item: Item, middle: str, beside: set[str]) -> str:
    if not context.digests.chars:
        return ""
    names = _held(context, item) | beside
    return digest("user", {}, middle, held=names, size=context.digests)


def _names_said(context: RenderContext, item: Item, middle: str, beside: set[str]) -> str:
    """Names that only the middle of an answer holds: the model states a finding once and uses it
    later."""
    limit = context.digests.limit(middle)
    names = unheld_names(middle, _held(context, item) | beside, limit) if limit else ""
    return f"{names}\n" if names else ""


def _held(context: RenderContext, item: Item) -> set[str]:
    items = context.plan.items
    own = {index for index, other in enumerate(items) if other is item}
    return context.names.in_view(context.plan, own)


def _object_of(context: RenderContext, item: Item) -> tuple[int, int]:
    objects, chat, chars = context.objects, context.chat, context.summary_chars
    id = compaction_id(objects.info.id, [item.key.address], None, f"foredeck {chars}")
    fields = chat.compactions.get(id)
    if fields is None or id not in objects.index.by_object:
        request = SummaryRequest("window", chars, item.time_ms)
        compact(objects, chat, [item], request, first=turn_number(chat, item), lists_losses=False)
        fields = chat.compactions[id]
    return objects.index.by_object[id], int(fields["first_turn"])

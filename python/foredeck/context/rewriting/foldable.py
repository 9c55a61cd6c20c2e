"""What may fold where it is, and how many characters that saves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import is_
from typing import NamedTuple

from foredeck.context.plan.ops import Op, PieceRef, recipe_chars
from foredeck.context.policies.pieces import Piece, folded_blocks, pieces_of
from foredeck.context.rebase import first_mutable, may_change
from foredeck.context.rendering.context import RenderContext
from foredeck.context.rendering.layout import contains_lines, folded, is_only_receipt, shown_text
from foredeck.sources.tool_calls import parse_read_range

RECEIPT_SAVING = 40
"""Characters from which on it pays to fold what only says that a file was written."""


class Fold(NamedTuple):
    """A candidate: a result, or a piece of a message, that folds where it is."""

    ref: PieceRef
    saving: int
    """Characters that the prompt becomes shorter by."""


@dataclass(slots=True)
class FoldFinder:
    """Finds what may fold in one plan, and keeps what it has worked out of an operation until
    another takes the place of that."""

    # It is asked at every call about every message of a session. Operations never change, and no
    # other plan has them: the very same object means the very same answer.

    _savings: dict[int, tuple[Op, int]] = field(default_factory=dict)
    """By message: its operation, and what folding it would save."""
    _pieces: dict[int, tuple[Op, frozenset[int], list[Fold]]] = field(default_factory=dict)
    """By message: its operation, the pieces that were asked for, and those worth folding."""
    _superseded: dict[int, tuple[Sequence[Op], frozenset[int]]] = field(default_factory=dict)
    """By object: the operations of the messages that show it, and the superseded messages."""

    def find(self, context: RenderContext, foldable: Collection[PieceRef] = ()) -> list[Fold]:
        """Content that may go: released, deactivated, superseded, or `foldable` by the policy.
        In the order of the messages."""
        plan, sets = context.plan, context.sets
        flight = plan.last_assistant()
        by_policy = {
            ref.message
            for ref in foldable
            if not ref.slot and (op := plan.ops[ref.message]).shows and op.subject not in sets.pins
        }
        found = [
            Fold(PieceRef(index), self.saving(context, index))
            for index in by_policy.union(self._released(context))
            if self.may_fold(context, index, flight)
        ]
        pieces = {ref for ref in foldable if ref.slot} | set(_released_pastes(context, flight))
        return sorted([*found, *self._worthwhile_pieces(context, pieces)])

    def results(self, context: RenderContext) -> list[int]:
        """Messages whose content is neither pinned nor in flight, and long enough to be folded; the
        least recently used first."""
        plan = context.plan
        flight = plan.last_assistant()
        found = [
            index
            for ordinal, indexes in plan.holders.items()
            if ordinal not in context.sets.pins
            for index in indexes
            if plan.items[index].kind == "result" and self.may_fold(context, index, flight)
        ]
        return sorted(found, key=lambda i: (plan.last_use(i), i))

    def may_fold(self, context: RenderContext, index: int, flight: int) -> bool:
        """Whether folding a result is worth it, and takes nothing from results in flight: those
        after message `flight`, which the model has not seen yet, nor what they refer to."""
        if context.plan.last_use(index) > flight:
            return False
        least = context.min_saving_chars
        if is_only_receipt(context.plan, index):
            # Each is small, but there is one for each edit, and it says nothing new.
            least = min(least, RECEIPT_SAVING)
        return self.saving(context, index) >= least

    def saving(self, context: RenderContext, index: int) -> int:
        """Characters that folding a result saves, its digest taken to be as long as it may be."""
        plan = context.plan
        op, item = plan.ops[index], plan.items[index]
        known = self._savings.get(index)
        if known is None or known[0] is not op:
            after = recipe_chars(folded(context, index).blocks, item)
            if not is_only_receipt(plan, index):
                after += context.digests.limit(shown_text(plan, index))
            known = self._savings[index] = op, plan.chars[index] - after
        return known[1]

    def all_chars(self, context: RenderContext) -> int:
        """Characters that folding everything would save, where that may be done now."""
        allowed = may_change(context.plan, self.results(context))
        return sum(self.saving(context, index) for index in allowed)

    def most_chars(
        self, context: RenderContext, savings: Mapping[PieceRef, int]
    ) -> tuple[int, bool]:
        """Characters that could leave the prompt at this call by what has these `savings` and by
        folding all results, and whether sealed reasoning holds back some of that."""
        allowed = may_change(context.plan, {ref.message for ref in savings})
        found = {ref: chars for ref, chars in savings.items() if ref.message in allowed}
        held = len(found) < len(savings)
        free = first_mutable(context.plan)
        for index in self.results(context):
            if index < free:
                held = True
                break
            found.setdefault(PieceRef(index), self.saving(context, index))
        return sum(found.values()), held

    def _released(self, context: RenderContext) -> Iterator[int]:
        """Results whose content is no longer kept, and copies that newer ones supersede."""
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
        """Pieces of messages that are worth folding."""
        plan = context.plan
        for index, group in groupby(sorted(refs), key=lambda ref: ref.message):
            op, slots = plan.ops[index], frozenset(ref.slot for ref in group)
            known = self._pieces.get(index)
            if known is None or known[0] is not op or known[1] != slots:
                known = op, slots, find_pieces(context, index, slots)
                # None are worth it while a call has no handle yet, which it may get.
                if known[2]:
                    self._pieces[index] = known
            yield from known[2]

    def _superseded_of(self, context: RenderContext, ordinal: int) -> frozenset[int]:
        plan = context.plan
        ops = [plan.ops[index] for index in plan.holders[ordinal]]
        before, superseded = self._superseded.get(ordinal, ((), frozenset()))
        if len(before) != len(ops) or not all(map(is_, before, ops)):
            superseded = find_superseded(context, plan.holders[ordinal])
            self._superseded[ordinal] = ops, superseded
        return superseded


def find_pieces(context: RenderContext, index: int, slots: Collection[int]) -> list[Fold]:
    """Those of these pieces of a message that are worth folding."""
    item, op = context.plan.items[index], context.plan.ops[index]
    if folded_blocks(item, {*slots, *op.folded}, context.label) is None:
        return []
    found = (
        Fold(PieceRef(index, piece.slot), piece.saving - _digest_chars(context, piece))
        for piece in pieces_of(item)
        if piece.slot in slots
    )
    return [fold for fold in found if fold.saving >= context.min_saving_chars]


def _digest_chars(context: RenderContext, piece: Piece) -> int:
    """What the digest of a long text may take; of other pieces none is left."""
    said = piece.kind in ("message", "answer")
    return context.digests.limit(piece.text) if said else 0


def find_superseded(context: RenderContext, indexes: list[int]) -> frozenset[int]:
    """Of the messages that show one object, those whose lines a newer, whole copy covers; but for
    copies that a difference in view refers to."""
    plan = context.plan
    old = {
        index
        for position, index in enumerate(indexes)
        if any(_covers(context, newer, index) for newer in indexes[position + 1 :])
    }
    referred_to = {
        op.base for index in indexes if (op := plan.ops[index]).form == "diff" and index not in old
    }
    return frozenset(old - referred_to)


def _covers(context: RenderContext, newer: int, older: int) -> bool:
    """Whether the newer message shows at least the range of the file that the older one does."""
    new, old = context.plan.items[newer], context.plan.items[older]
    op, other = context.plan.ops[newer], context.plan.ops[older]
    if op.form == "diff" or (op.version or 0) < (other.version or 0):
        return False
    if op.text_hash is None:
        # The newer one is cut short.
        return False
    shown, before = (
        parse_read_range(item.arguments, shown_text(context.plan, index))
        for item, index in ((new, newer), (old, older))
    )
    if shown is None or before is None:
        return shown is before
    lines = shown.first <= before.first and before.last <= shown.last
    return shown.complete or lines or contains_lines(shown.text, before.text)


def _released_pastes(context: RenderContext, flight: int) -> Iterator[PieceRef]:
    """Long texts of the user's, of earlier turns, that were deactivated."""
    plan, sets = context.plan, context.sets
    for ordinal, indexes in plan.holders.items():
        if ordinal in sets.active or ordinal in sets.pins:
            continue
        for index in indexes:
            item = plan.items[index]
            earlier = item.turn < plan.turn and plan.last_use(index) <= flight
            if item.kind == "user" and earlier and plan.ops[index].blocks is None:
                yield from (PieceRef(index, p.slot) for p in pieces_of(item) if p.kind == "message")

"""What may be folded at the next rebase, and what folding it would save. Renders nothing.

Savings and superseded copies follow from the operations, so they are kept in the plan until that
of a message is replaced: this is asked at every call, of every message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby

from foredeck.context.plan.ops import PieceRef, recipe_chars
from foredeck.context.policies.pieces import Piece, folded_blocks, pieces_of
from foredeck.context.rendering.layout import (
    RenderContext,
    folded,
    is_only_receipt,
    shown_text,
)
from foredeck.context.rendering.savings import contains_lines
from foredeck.sources.recorded import parse_read_range

RECEIPT_SAVING = 40
"""Characters from which on it pays to fold what only says that a file was written."""


def find_collapsible(
    context: RenderContext, wanted: Collection[PieceRef] = ()
) -> dict[PieceRef, int]:
    """Content that may go: released, deactivated, superseded, or `wanted` by the policy.

    With the characters that folding it would save, in the order of the messages.
    """
    plan, sets = context.plan, context.sets
    flight = plan.last_assistant()
    found = [index for index in _given_up(context) if may_fold(context, index, flight)]
    collapsible = {PieceRef(index): saving(context, index) for index in found}
    for ref in wanted:
        if not ref.slot and may_fold(context, ref.message, flight):
            op = plan.ops[ref.message]
            if op.shows and op.subject not in sets.pins:
                collapsible[ref] = saving(context, ref.message)
    pieces = {ref for ref in wanted if ref.slot} | set(_given_up_pastes(context, flight))
    collapsible |= _worthwhile_pieces(context, pieces)
    return dict(sorted(collapsible.items()))


def foldable_results(context: RenderContext) -> list[int]:
    """Messages whose content is neither pinned nor in flight, and long enough to be folded."""
    flight = context.plan.last_assistant()
    return [
        index
        for ordinal, indexes in context.plan.holders.items()
        if ordinal not in context.sets.pins
        for index in indexes
        if context.plan.items[index].kind == "result" and may_fold(context, index, flight)
    ]


def least_used(context: RenderContext) -> list[int]:
    """`foldable_results`, the least recently used first."""
    plan = context.plan
    return sorted(foldable_results(context), key=lambda i: (plan.last_use(i), i))


def may_fold(context: RenderContext, index: int, flight: int) -> bool:
    """Whether folding a result is worth it, and takes nothing from results in flight: those after
    message `flight`, which the model has not seen yet, nor what they refer to."""
    if context.plan.last_use(index) > flight:
        return False
    least = context.min_saving_chars
    if is_only_receipt(context.plan, index):
        # Each is small, but there is one for each edit, and it tells nothing.
        least = min(least, RECEIPT_SAVING)
    return saving(context, index) >= least


def saving(context: RenderContext, index: int) -> int:
    """Characters that folding a result saves, its digest taken to be as long as it may be."""
    plan = context.plan
    known = plan.savings.get(index)
    if known is not None:
        return known
    item = plan.items[index]
    after = recipe_chars(folded(context, index).blocks, item)
    if not is_only_receipt(plan, index):
        after += context.digests.limit(shown_text(plan, index))
    plan.savings[index] = plan.chars[index] - after
    return plan.savings[index]


def find_piece_savings(
    context: RenderContext, index: int, slots: Collection[int]
) -> dict[PieceRef, int]:
    """What folding these pieces of a message saves, piece by piece; only what is worth it."""
    item, op = context.plan.items[index], context.plan.ops[index]
    if folded_blocks(item, {*slots, *op.folded}, context.label) is None:
        return {}
    found = {
        PieceRef(index, piece.slot): piece.saving - _digest_chars(context, piece)
        for piece in pieces_of(item)
        if piece.slot in slots
    }
    return {ref: chars for ref, chars in found.items() if chars >= context.min_saving_chars}


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


def _given_up(context: RenderContext) -> set[int]:
    """Results whose content is no longer kept, and copies that newer ones supersede."""
    plan, sets = context.plan, context.sets
    found: set[int] = set()
    for ordinal, indexes in plan.holders.items():
        old = _superseded(context, ordinal) if len(indexes) > 1 else ()
        for index in indexes:
            if plan.items[index].kind != "result":
                continue
            unwanted = index not in context.retention.contents or ordinal not in sets.active
            if index in old or (unwanted and ordinal not in sets.pins):
                found.add(index)
    return found


def _given_up_pastes(context: RenderContext, flight: int) -> Iterator[PieceRef]:
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


def _worthwhile_pieces(context: RenderContext, refs: Collection[PieceRef]) -> dict[PieceRef, int]:
    """Pieces of messages that are worth folding, with what that saves."""
    found: dict[PieceRef, int] = {}
    for index, group in groupby(sorted(refs), key=lambda ref: ref.message):
        slots = frozenset(ref.slot for ref in group)
        known = context.plan.piece_savings.get(index)
        if known is None or known[0] != slots:
            known = slots, find_piece_savings(context, index, slots)
            if known[1]:
                context.plan.piece_savings[index] = known
        found |= known[1]
    return found


def _superseded(context: RenderContext, ordinal: int) -> frozenset[int]:
    known = context.plan.superseded
    if ordinal not in known:
        known[ordinal] = find_superseded(context, context.plan.holders[ordinal])
    return known[ordinal]


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

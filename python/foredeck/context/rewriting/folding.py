"""Folding content in place: what may go, and what must go beyond that.

Nothing before `first_mutable` is touched: sealed reasoning of the turn under way is bound to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import groupby

from foredeck.context.cache.rebase import WaterMarks, first_mutable, may_change
from foredeck.context.messages.items import Item
from foredeck.context.plan.ops import REASONING, Op, PieceRef, Rewrite
from foredeck.context.policies.pieces import folded_blocks, pieces_of
from foredeck.context.rendering.layout import Layout, RenderContext, stand_alone
from foredeck.context.rewriting.refresh import Refresh, refresh


def fold(
    context: RenderContext,
    layout: Layout,
    refs: Collection[PieceRef],
    refreshes: Collection[Refresh],
) -> set[int]:
    """Fold these contents, and bring reads up to date, where that is allowed. Returns the messages
    that were folded."""
    plan = context.plan
    allowed = may_change(
        plan, {*(ref.message for ref in refs), *(each.index for each in refreshes)}
    )
    folded = {ref.message for ref in refs if not ref.slot} & allowed
    # All results at once: a digest names only what can be read nowhere else once all have gone.
    layout.fold(context, folded)
    pieces = [ref for ref in refs if ref.message in allowed]
    pieces += refresh(context, [each for each in refreshes if each.index in allowed])
    of_messages = _fold_pieces(context, pieces)
    stand_alone(context, {i for i in of_messages if plan.items[i].kind == "user"})
    return folded | of_messages


def fold_pastes(context: RenderContext, refs: Collection[PieceRef]) -> None:
    """For a layout that renders all at every call: fold these pieces of the user's messages."""
    allowed = may_change(context.plan, {ref.message for ref in refs})
    items = context.plan.items
    pastes = [ref for ref in refs if ref.message in allowed and items[ref.message].kind == "user"]
    for index in _fold_pieces(context, pastes):
        context.branch.release(index)


def fold_down(
    context: RenderContext, layout: Layout, results: Iterable[int], fits: Callable[[], bool]
) -> set[int]:
    """Fold these results, one after the other, until the prompt fits. Returns the messages that
    were folded."""
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
    """Leave out the signed reasoning that is bound to bytes which change at `first`.

    A provider that checks takes none of it any more, in whichever turn it is, nor what comes
    after a block that was left out: so all of it goes, and what comes before stays. The turn under
    way has none there (`first_mutable`), or its results are followed by a word that ends it.
    """
    plan = context.plan
    for index in range(first, len(plan)):
        item, op = plan.items[index], plan.ops[index]
        if not plan.seals.binds(item) or op.form not in ("host", "folded"):
            continue
        if REASONING in op.folded or (index == first and not _lost_thinking(item, op)):
            continue
        fold_slots(context, index, {REASONING, *op.folded})


def fold_slots(context: RenderContext, index: int, slots: set[int]) -> bool:
    """Render a message without these pieces, if a message can go without them."""
    item = context.plan.items[index]
    blocks = folded_blocks(item, slots, context.label, context.fold_text)
    if blocks is None:
        return False
    shown = context.plan.ops[index].shown
    context.plan.write(index, Rewrite("folded", blocks, shown, folded=tuple(sorted(slots))))
    return True


def objects_to_shed(
    context: RenderContext, *, fixed_chars: int, window: int | None, marks: WaterMarks
) -> set[int]:
    """For a layout that renders all at every call: what must go to stay below the marks.

    The least recently used objects go first. Returns their handles; nothing is released or
    rendered here.
    """
    plan, sets = context.plan, context.sets
    sizes = {ordinal: len(context.content(ordinal) or "") for ordinal in sets.active}
    chars = plan.chars_sent + fixed_chars + sum(sizes.values())
    if not window or context.gauge.tokens(chars) <= marks.high * window:
        return set()
    gone: set[int] = set()
    flight = plan.last_assistant()
    kept = context.retention.contents
    for index in sorted(kept, key=lambda i: (plan.last_use(i), i)):
        ordinal = kept[index]
        if context.gauge.tokens(chars) <= marks.low * window:
            break
        if index > flight or ordinal in sets.pins:
            continue
        gone.add(ordinal)
        chars -= sizes.pop(ordinal, 0)
    return gone


def _lost_thinking(item: Item, op: Op) -> bool:
    return any(p.slot in op.folded for p in pieces_of(item) if p.kind == "thinking")


def _fold_pieces(context: RenderContext, refs: list[PieceRef]) -> set[int]:
    """Render messages without these pieces; returns those that changed."""
    wanted = sorted(ref for ref in refs if ref.slot > 0)
    folded: set[int] = set()
    for index, group in groupby(wanted, key=lambda ref: ref.message):
        slots = {ref.slot for ref in group} | {*context.plan.ops[index].folded}
        if fold_slots(context, index, slots):
            folded.add(index)
    return folded

"""Folding content in place: what is collapsible, and what must go beyond that.

Nothing before `first_mutable` is touched: sealed reasoning of the turn under way is bound to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import groupby

from foredeck.context.cache.rebase import WaterMarks, first_mutable, may_change
from foredeck.context.messages.items import Item
from foredeck.context.plan.ops import REASONING, Op, PieceRef, Rewrite
from foredeck.context.policies.pieces import folded_blocks, pieces_of
from foredeck.context.rendering.layout import Layout, RenderContext, stand_alone
from foredeck.context.rewriting.collapsible import foldable_results, least_used, saving
from foredeck.context.rewriting.refresh import Refresh, refresh


def fold(
    context: RenderContext,
    layout: Layout,
    refs: Collection[PieceRef],
    refreshes: Mapping[PieceRef, Refresh],
) -> set[int]:
    """Fold what is collapsible, where that is allowed. Returns the messages that were folded."""
    permitted = _permitted(context, {ref.message for ref in refs})
    folded = {ref.message for ref in refs if not ref.slot} & permitted
    layout.fold(context, folded)
    allowed = [ref for ref in refs if ref.message in permitted]
    allowed += refresh(context, [refreshes[ref] for ref in allowed if ref in refreshes])
    of_messages = _fold_pieces(context, allowed)
    stand_alone(context, {i for i in of_messages if context.plan.items[i].kind == "user"})
    return folded | of_messages


def fold_pastes(context: RenderContext, refs: Collection[PieceRef]) -> None:
    """For a layout that renders all at every call: fold these pieces of the user's messages."""
    allowed = _permitted(context, {ref.message for ref in refs})
    items = context.plan.items
    pastes = [ref for ref in refs if ref.message in allowed and items[ref.message].kind == "user"]
    for index in _fold_pieces(context, pastes):
        context.branch.release(index)


def fold_down(context: RenderContext, layout: Layout, tokens: int, fixed_chars: int) -> set[int]:
    """Fold the least recently used contents until the prompt is that small.

    `fixed_chars`: what is around the messages (system prompt, tools). Returns the messages
    that were folded.
    """
    plan = context.plan
    folded: set[int] = set()
    free = first_mutable(plan)
    for index in least_used(context):
        if context.gauge.prompt(plan, fixed_chars) <= tokens:
            break
        if index < free:
            # What is older must stay, so what is newer, and more likely needed, stays too.
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


def may_go(context: RenderContext) -> int:
    """Characters that folding everything would save, where that may be done now."""
    permitted = _permitted(context, set(foldable_results(context)))
    return sum(saving(context, index) for index in permitted)


def foldable_chars(context: RenderContext, collapsible: Mapping[PieceRef, int]) -> tuple[int, bool]:
    """What `fold` and `fold_down` together could take out of the prompt at this call, and
    whether sealed reasoning holds back some of what they would like to."""
    permitted = _permitted(context, {ref.message for ref in collapsible})
    savings = {ref: chars for ref, chars in collapsible.items() if ref.message in permitted}
    held = len(savings) < len(collapsible)
    free = first_mutable(context.plan)
    for index in least_used(context):
        if index < free:
            held = True
            break
        savings.setdefault(PieceRef(index), saving(context, index))
    return sum(savings.values()), held


def _lost_thinking(item: Item, op: Op) -> bool:
    return any(p.slot in op.folded for p in pieces_of(item) if p.kind == "thinking")


def _permitted(context: RenderContext, indexes: set[int]) -> set[int]:
    """Those that no sealed reasoning keeps as they are."""
    return may_change(context.plan, indexes)


def _fold_pieces(context: RenderContext, refs: list[PieceRef]) -> set[int]:
    """Render messages without these pieces; returns those that changed."""
    wanted = sorted(ref for ref in refs if ref.slot > 0)
    folded: set[int] = set()
    for index, group in groupby(wanted, key=lambda ref: ref.message):
        slots = {ref.slot for ref in group} | {*context.plan.ops[index].folded}
        if fold_slots(context, index, slots):
            folded.add(index)
    return folded

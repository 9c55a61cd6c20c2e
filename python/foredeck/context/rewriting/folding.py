"""Folding content in place: what is left of results, pieces of messages and signed reasoning.

Nothing before `first_mutable` is touched: sealed reasoning of the turn under way is bound to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from itertools import groupby

from foredeck.context.compactions import SummaryRequest, compact, turn_number
from foredeck.context.digests import digest, unheld_names
from foredeck.context.messages.items import Item
from foredeck.context.plan.ops import REASONING, Op, PieceRef
from foredeck.context.policies.pieces import LONG_TEXTS, folded_blocks, pieces_of
from foredeck.context.rebase import WaterMarks, first_mutable, may_change
from foredeck.context.rendering.context import RenderContext
from foredeck.context.rendering.layout import Layout, render_dependents
from foredeck.context.state.objects import user_object
from foredeck.context.wording import folded_answer, folded_paste
from foredeck.model.names import identifiers
from foredeck.model.observations import compaction_id


def fold_results(context: RenderContext, layout: Layout, indexes: Collection[int]) -> set[int]:
    """Fold these results as far as they may change; returns those that were."""
    folded = may_change(context.plan, indexes)
    # All at once: a digest names only what can be read nowhere else once all have gone.
    layout.fold(context, folded)
    return folded


def fold_pieces(context: RenderContext, refs: Collection[PieceRef]) -> set[int]:
    """Fold these pieces of messages as far as they may change; returns the messages that have."""
    allowed = may_change(context.plan, {ref.message for ref in refs})
    folded = _fold_pieces(context, [ref for ref in refs if ref.message in allowed])
    render_dependents(context, {i for i in folded if context.plan.items[i].kind == "user"})
    return folded


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
    """Leave out the signed reasoning that is bound to bytes which change at `first`."""
    plan = context.plan
    # A provider that checks takes none of it any more, in whichever turn it is, nor what comes
    # after a block that was left out: so all of it goes, and what comes before stays. The turn
    # under way has none there (`first_mutable`), or a message that ends it follows its results.
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
    blocks = folded_blocks(item, slots, context.label, partial(_fold_text, context))
    if blocks is None:
        return False
    shown = context.plan.ops[index].shown
    context.plan.write(index, Op("folded", blocks, shown, folded=tuple(sorted(slots))))
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
    kept = context.branch.kept
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


def _fold_text(context: RenderContext, item: Item, text: str) -> str:
    """The beginning and the end of a text, and between them how to have all of it."""
    if item.kind == "user":
        return _folded_paste(context, item, text)
    ends = LONG_TEXTS[item.kind][1]
    ordinal, turn = _object_of(context, item)
    first, middle, last = text[:ends], text[ends:-ends], text[-ends:]
    names = _names_said(context, item, middle, {*identifiers(first), *identifiers(last)})
    return first + folded_answer(ordinal, turn, len(middle)) + names + last


def _folded_paste(context: RenderContext, item: Item, text: str) -> str:
    """First and last lines of a paste, a reference to its object, and a digest of the rest."""
    start, end = _middle(text, LONG_TEXTS[item.kind][1])
    first, middle, last = text[:start], text[start:end], text[end:]
    lines = text.count("\n", 0, start) + 1, text.count("\n", 0, end)
    ordinal = user_object(context.objects, text).ordinal
    reference = folded_paste(ordinal, len(middle), lines if middle.endswith("\n") else None)
    facts = _digest(context, item, middle, {*identifiers(first), *identifiers(last)})
    between = [reference, facts] if facts else [reference]
    return "\n".join([first.removesuffix("\n"), *between, last])


def _middle(text: str, ends: int) -> tuple[int, int]:
    """Where the part that folds begins and ends: whole lines, but of a text that hardly has any."""
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
    held = _held(context, item) | beside
    return digest("user", {}, middle, held=held, size=context.digests)


def _names_said(context: RenderContext, item: Item, middle: str, beside: set[str]) -> str:
    """A line of the names that only the middle of an answer holds: what the model has found out,
    or decided to call something, it says once and goes on to use."""
    limit = context.digests.limit(middle)
    names = unheld_names(middle, _held(context, item) | beside, limit) if limit else ""
    return f"{names}\n" if names else ""


def _held(context: RenderContext, item: Item) -> set[str]:
    """The names that are in the rest of the prompt."""
    items = context.plan.items
    own = {index for index, other in enumerate(items) if other is item}
    return context.names.in_view(context.plan, own)


def _object_of(context: RenderContext, item: Item) -> tuple[int, int]:
    """The object of a message whose middle folds: its handle, and the number of its turn there.
    Made once; committed with the call."""
    objects, chat, chars = context.objects, context.chat, context.summary_chars
    id = compaction_id(objects.info.id, [item.key.address], None, f"foredeck {chars}")
    known = chat.compactions.get(id)
    if known is None or id not in objects.index.by_object:
        request = SummaryRequest("window", chars, item.time_ms)
        compact(objects, chat, [item], request, first=turn_number(chat, item), lists_losses=False)
        known = chat.compactions[id]
    return objects.index.by_object[id], int(known["first_turn"])

"""Which messages lose their content at a rebase, once there is a reason for one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import groupby

from foredeck.context.cache.rebase import WaterMarks, first_free
from foredeck.context.messages.items import Item
from foredeck.context.messages.parts import SEALED, Part, PieceRef, recipe_chars
from foredeck.context.policies.pieces import folded_blocks, pieces_of
from foredeck.context.rendering.layout import (
    Layout,
    RenderContext,
    folded_part,
    is_receipt,
    shown_text,
)
from foredeck.context.rendering.savings import contains_lines
from foredeck.context.rewriting.refresh import Refresh, refresh
from foredeck.sources import parse_read_range

NONE: Mapping[PieceRef, Refresh] = {}

RECEIPT_SAVING = 40
"""Characters from which on it pays to fold what only says that a file was written."""


def fold(
    context: RenderContext,
    layout: Layout,
    refs: Collection[PieceRef],
    refreshes: Mapping[PieceRef, Refresh] = NONE,
) -> set[int]:
    """Fold what is due, where that is allowed. Returns the messages that were folded."""
    permitted = _permitted(context, {ref.message for ref in refs})
    folded = {ref.message for ref in refs if not ref.slot} & permitted
    layout.fold(context, folded)
    told = [ref for ref in refs if ref.message in permitted]
    told += refresh(context, [refreshes[ref] for ref in told if ref in refreshes])
    folded |= _fold_pieces(context, told)
    return folded


def unseal(context: RenderContext, first: int) -> None:
    """Leave out the signed reasoning that is bound to bytes which change at `first`.

    A provider that checks takes none of it any more, in whichever turn it stands, nor what comes
    after a block that was left out: so all of it goes, and what comes before stays. The turn under
    way has none there (`first_free`), or its results are followed by a word that ends it.
    """
    conversation = context.conversation
    for index in range(first, len(conversation)):
        item, part = conversation.items[index], conversation.parts[index]
        if not item.signed or item.void or part.form not in ("host", "folded"):
            continue
        if SEALED in part.slots or (index == first and not _lost_thinking(item, part)):
            continue
        slots = {SEALED, *part.slots}
        blocks = folded_blocks(item, slots, context.label, context.aside)
        if blocks is not None:
            context.render(index, Part("folded", blocks, slots=tuple(sorted(slots))))


def _lost_thinking(item: Item, part: Part) -> bool:
    return any(p.slot in part.slots for p in pieces_of(item) if p.kind == "thinking")


def shed(
    context: RenderContext, *, fixed_chars: int, window: int | None, water: WaterMarks
) -> set[int]:
    """For a layout that writes all anew: the objects that must go to stay below the marks.

    The least recently used go first. Returns their handles; nothing is let go or rendered here.
    """
    conversation, sets = context.conversation, context.sets
    sizes = {ordinal: len(context.content(ordinal) or "") for ordinal in sets.active}
    chars = conversation.chars_sent + fixed_chars + sum(sizes.values())
    if not window or context.gauge.tokens(chars) <= water.high * window:
        return set()
    gone: set[int] = set()
    flight = conversation.last_assistant()
    for index in sorted(conversation.wanted, key=lambda i: (conversation.last_use(i), i)):
        ordinal = conversation.wanted[index]
        if context.gauge.tokens(chars) <= water.low * window:
            break
        if index > flight or ordinal in sets.pins:
            continue
        gone.add(ordinal)
        chars -= sizes.pop(ordinal, 0)
    return gone


def collapsible(context: RenderContext, wanted: Collection[PieceRef] = ()) -> dict[PieceRef, int]:
    """Content that may go: expired, deactivated, superseded, or `wanted` by the policy.

    With the characters that folding it would save, in the order of the messages.
    """
    conversation, sets = context.conversation, context.sets
    found: set[int] = set()
    for ordinal, indexes in conversation.holders.items():
        old = _superseded(context, ordinal) if len(indexes) > 1 else ()
        for index in indexes:
            unwanted = index not in conversation.wanted or ordinal not in sets.active
            if index in old or (unwanted and ordinal not in sets.pins):
                found.add(index)
    flight = conversation.last_assistant()
    due = {PieceRef(i): _saving(context, i) for i in found if _may_fold(context, i, flight)}
    for ref in wanted:
        if not ref.slot and _may_fold(context, ref.message, flight):
            part = conversation.parts[ref.message]
            if part.shows and part.subject not in sets.pins:
                due[ref] = _saving(context, ref.message)
    due |= _due_pieces(context, [ref for ref in wanted if ref.slot])
    return dict(sorted(due.items()))


def _due_pieces(context: RenderContext, refs: list[PieceRef]) -> dict[PieceRef, int]:
    """Pieces of messages that are worth folding, with what that saves."""
    found: dict[PieceRef, int] = {}
    for index, group in groupby(sorted(refs), key=lambda ref: ref.message):
        slots = frozenset(ref.slot for ref in group)
        known = context.conversation.piece_savings.get(index)
        if known is None or known[0] != slots:
            known = slots, find_piece_savings(context, index, slots)
            if known[1]:
                context.conversation.piece_savings[index] = known
        found |= known[1]
    return found


def find_piece_savings(
    context: RenderContext, index: int, slots: Collection[int]
) -> dict[PieceRef, int]:
    """What folding these pieces of a message saves, piece by piece; only what is worth it."""
    item, part = context.conversation.items[index], context.conversation.parts[index]
    if folded_blocks(item, {*slots, *part.slots}, context.label) is None:
        return {}
    return {
        PieceRef(index, piece.slot): piece.saving
        for piece in pieces_of(item)
        if piece.slot in slots and piece.saving >= context.min_saving_chars
    }


def _fold_pieces(context: RenderContext, refs: list[PieceRef]) -> set[int]:
    """Render messages without these pieces; returns those that changed."""
    folded: set[int] = set()
    wanted = sorted(ref for ref in refs if ref.slot > 0)
    for index, group in groupby(wanted, key=lambda ref: ref.message):
        slots = {ref.slot for ref in group} | {*context.conversation.parts[index].slots}
        item = context.conversation.items[index]
        blocks = folded_blocks(item, slots, context.label, context.aside)
        if blocks is not None:
            context.render(index, Part("folded", blocks, slots=tuple(sorted(slots))))
            folded.add(index)
    return folded


def _permitted(context: RenderContext, indexes: set[int]) -> set[int]:
    """Those after which no reasoning stands that is bound to what precedes it."""
    free = first_free(context.conversation)
    return {index for index in indexes if index >= free}


def fold_down(context: RenderContext, layout: Layout, tokens: int, fixed_chars: int) -> set[int]:
    """Fold the least recently used contents until the prompt is that small.

    `fixed_chars`: what stands around the messages (system prompt, tools). Returns the messages
    that were folded.
    """
    conversation = context.conversation
    folded: set[int] = set()
    free = first_free(conversation)
    for index in _least_used(context):
        if context.gauge.prompt(conversation, fixed_chars) <= tokens:
            break
        if index < free:
            # What is older must stay, so what is newer, and more likely needed, stays too.
            break
        layout.fold(context, {index})
        folded.add(index)
        context.branch.release(index)
    return folded


def may_go(context: RenderContext) -> int:
    """Characters that folding everything would save, where that may be done now."""
    return sum(_saving(context, index) for index in _permitted(context, set(_foldable(context))))


def foldable_chars(context: RenderContext, due: Mapping[PieceRef, int]) -> tuple[int, bool]:
    """What `fold` and `fold_down` together could take out of the prompt at this call, and
    whether sealed reasoning holds back some of what they would like to."""
    permitted = _permitted(context, {ref.message for ref in due})
    savings = {ref: chars for ref, chars in due.items() if ref.message in permitted}
    held = len(savings) < len(due)
    free = first_free(context.conversation)
    for index in _least_used(context):
        if index < free:
            held = True
            break
        savings.setdefault(PieceRef(index), _saving(context, index))
    return sum(savings.values()), held


def _least_used(context: RenderContext) -> list[int]:
    """Contents that may go if they must, the least recently used first."""
    conversation = context.conversation
    return sorted(_foldable(context), key=lambda i: (conversation.last_use(i), i))


def _foldable(context: RenderContext) -> list[int]:
    """Messages whose content is neither pinned nor in flight, and long enough to be folded."""
    flight = context.conversation.last_assistant()
    return [
        index
        for ordinal, indexes in context.conversation.holders.items()
        if ordinal not in context.sets.pins
        for index in indexes
        if _may_fold(context, index, flight)
    ]


def _may_fold(context: RenderContext, index: int, flight: int) -> bool:
    """Neither in flight (after message `flight`) nor what a result in flight says stands above,
    and worth it."""
    conversation = context.conversation
    if max(index, conversation.referred_at.get(index, index)) > flight:
        return False
    least = context.min_saving_chars
    if is_receipt(conversation.items[index]):
        # Each is small, but there is one for each edit, and it tells nothing.
        least = min(least, RECEIPT_SAVING)
    return _saving(context, index) >= least


def _saving(context: RenderContext, index: int) -> int:
    """Characters that folding a result saves; kept until the message is rendered anew."""
    conversation = context.conversation
    saving = conversation.savings.get(index)
    if saving is None:
        part = folded_part(context, index)
        item = conversation.items[index]
        after = recipe_chars(part.blocks, item)
        if not is_receipt(item):
            after += context.digests.limit(shown_text(conversation, index))
        saving = conversation.savings[index] = conversation.parts[index].chars - after
    return saving


def _superseded(context: RenderContext, ordinal: int) -> frozenset[int]:
    """Older copies of an object whose lines a newer, whole copy covers; kept until one of them is
    rendered anew."""
    known = context.conversation.superseded
    if ordinal not in known:
        known[ordinal] = find_superseded(context, context.conversation.holders[ordinal])
    return known[ordinal]


def find_superseded(context: RenderContext, indexes: list[int]) -> frozenset[int]:
    """Of messages that show one object those whose lines a newer, whole copy covers."""
    conversation = context.conversation
    old: set[int] = set()
    for position, index in enumerate(indexes):
        for newer in indexes[position + 1 :]:
            if _covers(context, newer, index):
                old.add(index)
                break
    leaned_on = {
        part.base
        for index in indexes
        if (part := conversation.parts[index]).form == "diff" and index not in old
    }
    return frozenset(old - leaned_on)


def _covers(context: RenderContext, newer: int, older: int) -> bool:
    """Whether the newer message shows at least the range of the file that the older one does."""
    new, old = context.conversation.items[newer], context.conversation.items[older]
    part, other = context.conversation.parts[newer], context.conversation.parts[older]
    if part.form == "diff" or (part.version or 0) < (other.version or 0):
        return False
    if part.text_hash is None:
        # The newer one is cut short.
        return False
    shown, before = (
        parse_read_range(item.arguments, shown_text(context.conversation, index))
        for item, index in ((new, newer), (old, older))
    )
    if shown is None or before is None:
        return shown is before
    lines = shown.first <= before.first and before.last <= shown.last
    return shown.complete or lines or contains_lines(shown.text, before.text)

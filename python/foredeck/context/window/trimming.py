"""Cutting long texts in the middle, where compacting chat was not enough.

What is cut can be had by handle: of a result its own, any other message becomes an object first.
"""

from __future__ import annotations

from collections.abc import Collection

from foredeck.context import wording
from foredeck.context.messages.conversation import Conversation
from foredeck.context.messages.items import IMAGE_CHARS, Block, Item, text_block
from foredeck.context.messages.parts import GONE, Part
from foredeck.context.policies.pieces import pieces_of
from foredeck.context.rendering.layout import RenderContext
from foredeck.context.rewriting.folding import fold_slots
from foredeck.context.state.session import Session
from foredeck.context.window.budget import LEAST_CHARS, WindowBudget
from foredeck.context.window.compactions import SummaryRequest, compact, turn_number

PASSES = 3
"""Cutting is tried again where that was not enough: what an image counts depends on who counts."""

MARKER_CHARS = 200
"""What the line in the middle of a cut text takes, at most."""


def trim(
    session: Session, context: RenderContext, budget: WindowBudget, held: Collection[int]
) -> None:
    """Cut texts until the prompt fits. `held`: messages that are cut in the last resort only."""
    for number in range(PASSES):
        if budget.excess(context.branch) > 0:
            spared = held if number < PASSES - 1 else ()
            _trim_largest(session, context, budget, spared)


def _trim_largest(
    session: Session, context: RenderContext, budget: WindowBudget, spared: Collection[int]
) -> None:
    """Cut the largest texts, all to the same size, but for those of `spared`."""
    conversation = context.conversation
    for index, item in enumerate(conversation.items):
        if item.kind == "assistant" and budget.excess(context.branch) > 0:
            _fold_arguments(context, index)
    sizes = {
        index: part.chars
        for index, part in enumerate(conversation.parts)
        if index not in spared and _may_trim(conversation, index)
    }
    level = max(LEAST_CHARS, _level(list(sizes.values()), budget.excess(context.branch)))
    for index, size in sizes.items():
        if size > level:
            _trim_message(session, context, index, level, budget)


def _may_trim(conversation: Conversation, index: int) -> bool:
    is_text = conversation.items[index].kind in ("user", "result")
    return is_text and conversation.parts[index].form not in GONE


def _level(sizes: list[int], over: int) -> int:
    """The size to which the largest must shrink so that all together lose `over`."""
    ordered = sorted(sizes, reverse=True)
    total = 0
    for count, size in enumerate(ordered, start=1):
        total += size
        following = ordered[count] if count < len(ordered) else 0
        if total - count * following >= over:
            return max(0, (total - over) // count)
    return 0


def _fold_arguments(context: RenderContext, index: int) -> None:
    """Fold the long arguments of an assistant message, whether they were used of late or not."""
    item, part = context.conversation.items[index], context.conversation.parts[index]
    arguments = ("old", "argument")
    slots = {p.slot for p in pieces_of(item) if p.kind in arguments and not p.sealed}
    if slots and part.form in ("host", "folded"):
        fold_slots(context, index, slots | {*part.slots})


def _trim_message(
    session: Session, context: RenderContext, index: int, chars: int, budget: WindowBudget
) -> None:
    conversation = context.conversation
    item, part = conversation.items[index], conversation.parts[index]
    ordinal = part.subject
    texts = sum(1 for block in item.blocks if block.get("text"))
    if ordinal is None or (item.kind == "user" and texts > 1):
        request = SummaryRequest("window", budget.summary, budget.time_ms)
        first = turn_number(session, item)
        ordinal = compact(session, [item], request, first=first).ordinal
    label = [text_block(wording.handle(ordinal))] if item.kind == "result" else []
    blocks = [*label, *trimmed(item, chars, ordinal)]
    form = "full" if part.shows else part.form
    context.render(index, Part(form, blocks, part.subject, part.version))


def trimmed(item: Item, chars: int, ordinal: int) -> list[Block]:
    """The blocks of a message within this many characters: images go before text does."""
    texts = [n for n, block in enumerate(item.blocks) if block.get("text")]
    images = [n for n, block in enumerate(item.blocks) if block.get("type") == "image"]
    drops_images = len(images) * IMAGE_CHARS > chars // 2
    left = chars - (0 if drops_images else len(images) * IMAGE_CHARS)
    text = "\n".join(str(item.blocks[n]["text"]) for n in texts)
    kept: list[Block] = [{"keep": n} for n in texts]
    if len(text) > left:
        kept = [text_block(_without_middle(text, left, ordinal))]
    if drops_images and images:
        return [*kept, text_block(wording.images_left_out(len(images)))]
    return [*kept, *({"keep": n} for n in images)] or [text_block(wording.handle(ordinal))]


def _without_middle(text: str, chars: int, ordinal: int) -> str:
    """A text with beginning and end, and a line that says where its middle is to be had."""
    half = max(1, (chars - MARKER_CHARS) // 2)
    if len(text) <= chars or 2 * half >= len(text):
        return text
    marker = wording.left_out(ordinal, half, len(text) - half, len(text))
    return text[:half] + marker + text[len(text) - half :]

"""What takes the place of a long text whose middle folds: of an answer, or of the user's."""

from __future__ import annotations

from foredeck.context.digests import digest, unheld_names
from foredeck.context.messages.items import Item
from foredeck.context.policies.pieces import LONG_TEXTS
from foredeck.context.rendering.layout import RenderContext
from foredeck.context.state.objects import user_object
from foredeck.context.window.compactions import compact_message
from foredeck.context.wording import folded_answer, folded_paste
from foredeck.model.names import identifiers


def fold_text(context: RenderContext, item: Item, text: str, summary_chars: int) -> str:
    """The beginning and the end of a text, and between them how to have all of it."""
    if item.kind == "user":
        return _folded_paste(context, item, text)
    ends = LONG_TEXTS[item.kind][1]
    ordinal, turn = compact_message(context.objects, context.chat, item, summary_chars)
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

"""Which messages of ours go between the host's, and which of the host's do not go out.

Ours close the holes that a provider would refuse, end a turn, stand for what was compacted, or
hold what a layout keeps apart from the chat.
"""

from __future__ import annotations

from collections.abc import Sequence

from foredeck.context.cache.rebase import first_free
from foredeck.context.messages.items import Item
from foredeck.context.messages.parts import GONE, Part
from foredeck.context.messages.repairs import repair
from foredeck.context.rendering.layout import Layout, RenderContext
from foredeck.context.state.branch import Branch
from foredeck.context.state.session import Session
from foredeck.context.window.compactions import name_summary


def repair_list(
    session: Session, context: RenderContext, items: Sequence[Item], start: int
) -> None:
    """Decide again, from message `start` on, what is inserted and what is left out."""
    edits, parts = context.branch.edits, context.conversation.parts
    repairs = repair(items, start)
    edits.repair(repairs, start)
    name_summary(session, items, start)
    replaced = [(0, edits.compacted[0]), *edits.replaced]
    for first, until in replaced:
        if until > start:  # what is left out before stays so
            span = range(max(first, start), min(until, len(parts)))
            edits.drop([i for i in span if parts[i].form in GONE])
    for index in sorted(repairs.drops):
        if index < len(parts):
            leave_out(context, index, parts[index].subject)


def first_unrepaired(branch: Branch, items: Sequence[Item]) -> int:
    """The first message at which a list needs a repair that the branch does not have; the length
    of the list where none does."""
    return min(branch.edits.lacks(repair(items)), default=len(items))


def leave_out(context: RenderContext, index: int, subject: int | None) -> None:
    """A message that is not sent shows nothing, and keeps nothing active."""
    context.branch.release(index, subject)
    context.render(index, Part("dropped", []))


def has_leftovers(branch: Branch, layout: Layout) -> bool:
    """Whether another layout's text stands between the messages of one that has none."""
    return layout.keeps_bytes and branch.edits.has_layout_text


def insert_pools(context: RenderContext, layout: Layout) -> None:
    """Replace what the layout puts between the messages.

    What stands before sealed reasoning of the turn under way stays, since that is bound to it,
    but for what would part a call from its result: a list had ended with the call.
    """
    free = first_free(context.conversation)
    if layout.keeps_bytes:
        # What is there is another layout's, until the turn has ended and all is rendered again.
        free = len(context.conversation) + 1
    edits, items = context.branch.edits, context.conversation.items
    held = edits.inserts if edits.has_layout_text else ()
    results = {index for index in held if index < len(items) and items[index].kind == "result"}
    standing = edits.cut_layout(free, results - edits.drops)
    edits.put_layout(layout.inserts(context, standing))

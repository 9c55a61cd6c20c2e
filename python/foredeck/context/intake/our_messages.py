"""Which messages of ours go between the host's, and which of the host's do not go out.

Ours close the holes that a provider would refuse, end a turn, replace what was compacted, or
hold what a layout keeps apart from the chat.
"""

from __future__ import annotations

from collections.abc import Sequence

from foredeck.context.cache.rebase import first_mutable
from foredeck.context.messages.items import Item
from foredeck.context.plan.ops import Omit, as_host
from foredeck.context.plan.repairs import repair
from foredeck.context.plan.says import MessageSpan
from foredeck.context.rendering.layout import Layout, RenderContext
from foredeck.context.state.chat import Branch, Chat
from foredeck.context.state.objects import Objects
from foredeck.context.window.compactions import name_summary


def repair_list(
    objects: Objects, chat: Chat, context: RenderContext, items: Sequence[Item], start: int
) -> None:
    """Decide again, from message `start` on, what is inserted and what is left out."""
    plan, repairs = context.plan, repair(items, start)
    plan.repair(repairs, start)
    name_summary(objects, chat, items, start)
    covered = [MessageSpan(0, plan.compacted[0]), *plan.covered]
    for index in plan.omitted(start):
        is_covered = any(first <= index < until for first, until in covered)
        if not is_covered and index not in repairs.drops:
            plan.write(index, as_host(plan.ops[index]))
    for index in sorted(repairs.drops):
        leave_out(context, index, plan.ops[index].subject)


def first_unrepaired(branch: Branch, items: Sequence[Item]) -> int:
    """The first message at which a list needs a repair that the branch does not have; the length
    of the list where none does."""
    return min(branch.plan.lacks(repair(items)), default=len(items))


def leave_out(context: RenderContext, index: int, subject: int | None) -> None:
    """A message that is not sent shows nothing, and keeps nothing active."""
    context.branch.release(index, subject)
    context.plan.write(index, Omit())


def has_leftovers(branch: Branch, layout: Layout) -> bool:
    """Whether another layout has left text between the messages of one that puts none there."""
    return layout.keeps_bytes and branch.plan.has_layout_text


def put_layout_text(context: RenderContext, layout: Layout) -> None:
    """Replace what the layout puts between the messages.

    What precedes sealed reasoning of the turn under way stays, since that is bound to it,
    but for what would part a call from its result: a list had ended with the call.
    """
    free = first_mutable(context.plan)
    if layout.keeps_bytes:
        # What is there is another layout's, until the turn has ended and all is rendered again.
        free = len(context.plan) + 1
    plan, items = context.plan, context.plan.items
    held = plan.says if plan.has_layout_text else ()
    results = {index for index in held if index < len(items) and items[index].kind == "result"}
    standing = plan.cut_layout(free, [i for i in results if not plan.is_omitted(i)])
    plan.put_layout(layout.inserts(context, standing))

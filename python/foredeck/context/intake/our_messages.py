"""Messages of ours between the host's, and messages of the host's that do not go out.

Ours close the holes that a provider would refuse, end a turn, stand for what was compacted, or
hold what a layout keeps apart from the chat.
"""

from __future__ import annotations

from foredeck.context.cache.rebase import first_free
from foredeck.context.messages.items import Item
from foredeck.context.messages.parts import Part
from foredeck.context.messages.repairs import repair
from foredeck.context.rendering.layout import Layout, RenderContext
from foredeck.context.state.branch import Branch
from foredeck.context.state.session import Session
from foredeck.context.window.compactions import name_summary
from foredeck.context.window.fitting import compacted_until


def repair_list(session: Session, context: RenderContext, items: list[Item], start: int) -> None:
    """Decide again, from message `start` on, what of ours goes in and what stays out.

    What ended a turn, and what a layout holds, stays: sealed reasoning may be bound to it.
    """
    branch, parts = session.branch, session.branch.conversation.parts
    repairs = repair(items, start)
    before, branch.inserts = branch.inserts, repairs.inserts
    for index, ours in before.items():
        stay = [m for m in ours if index < start or m.get("ends") or m.get("layout")]
        if stay:
            branch.inserts[index] = [*branch.inserts.get(index, ()), *stay]
    branch.drops = {index for index in branch.drops if index < start} | repairs.drops
    name_summary(session, items, start)
    compacted, _ = compacted_until(session)
    branch.drops |= {i for i, part in enumerate(parts[:compacted]) if part.form == "dropped"}
    for index in sorted(repairs.drops):
        if index < len(parts):
            leave_out(context, index, parts[index].subject)


def first_unrepaired(branch: Branch, items: list[Item]) -> int:
    """The first message at which a list needs a repair that the branch does not have; the length
    of the list where none does."""
    wanted = repair(items)
    holes = (wanted.inserts.keys() - branch.inserts.keys()) | (wanted.drops - branch.drops)
    return min(holes, default=len(items))


def leave_out(context: RenderContext, index: int, subject: int | None) -> None:
    """A message that is not sent shows nothing, and keeps nothing active."""
    context.branch.release(index, subject)
    context.render(index, Part("dropped", []))


def has_leftovers(branch: Branch, layout: Layout) -> bool:
    """Whether another layout's text stands between the messages of one that has none."""
    ours = (message for messages in branch.inserts.values() for message in messages)
    return layout.keeps_bytes and any(message.get("layout") for message in ours)


def insert_pools(context: RenderContext, layout: Layout) -> None:
    """Replace what the layout puts between the messages.

    What stands before sealed reasoning of the turn under way stays, since that is bound to it.
    """
    branch, free = context.branch, first_free(context.conversation)
    if layout.keeps_bytes:
        # What is there is another layout's, until the turn has ended and all is rendered again.
        free = len(context.conversation) + 1
    stays = {
        index: [m for m in ours if index < free or not m.get("layout")]
        for index, ours in sorted(branch.inserts.items())
    }
    branch.inserts = {index: ours for index, ours in stays.items() if ours}
    held = (m for ours in branch.inserts.values() for m in ours if m.get("layout"))
    standing = [block for message in held for block in message["blocks"]]
    for index, blocks in layout.inserts(context, standing).items():
        ours = {"kind": "user", "blocks": blocks, "layout": True}
        others = branch.inserts.get(index, [])
        branch.inserts[index] = [ours, *others] if index == 0 else [*others, ours]

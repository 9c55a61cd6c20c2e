"""Pinned objects stay in full where the chat around them is compacted.

A result cannot stand without its call: the answer that asked for it stays, and its other results
as references.
"""

from __future__ import annotations

from foredeck.context.messages.items import Item
from foredeck.context.rendering.layout import NewResult, RenderContext, full_part, reference_part

PINNED_SHARE = 0.5
"""Of what may stay, at most, for pinned objects: the work at hand needs room as well."""


def messages_held(context: RenderContext, chars: int) -> frozenset[int]:
    """The messages that stay for what is pinned, within `chars` characters; small objects first."""
    conversation = context.conversation
    found: set[int] = set()
    holders = [conversation.holders.get(ordinal) for ordinal in sorted(context.sets.pins)]
    newest = [indexes[-1] for indexes in holders if indexes]
    left = chars * PINNED_SHARE
    for index in sorted(newest, key=lambda i: (conversation.items[i].chars, i)):
        left -= conversation.items[index].chars
        group = _group(conversation.items, index)
        if left < 0:
            break
        found |= group
    return frozenset(found)


def hold(context: RenderContext, held: frozenset[int], until: int) -> None:
    """What stays of the messages before `until`: pinned contents in full, the rest folded."""
    conversation = context.conversation
    for index in sorted(n for n in held if n < until):
        item, part = conversation.items[index], conversation.parts[index]
        if item.kind != "result":
            continue
        if part.subject not in context.sets.pins:
            if part.shows:
                context.branch.release(index)
            context.render(index, reference_part(context, index))
        elif part.base is not None:
            placed = NewResult(index, part.subject, part.version, part.text_hash)
            context.render(index, full_part(item, placed))


def _group(items: list[Item], index: int) -> set[int]:
    """An answer with its results, by the index of one of these; empty for any other message."""
    if items[index].kind != "result":
        return set()
    call_id = items[index].call_id
    first = index
    while first >= 0 and items[first].kind != "assistant":
        first -= 1
    if first < 0 or all(call.id != call_id for call in items[first].calls):
        return set()
    last = index
    while last + 1 < len(items) and items[last + 1].kind == "result":
        last += 1
    return {n for n in range(first, last + 1) if items[n].kind in ("assistant", "result")}

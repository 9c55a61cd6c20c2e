"""Names that can be read in the prompt as it is now."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from foredeck.context.messages.items import Block
from foredeck.context.plan.plan import Plan
from foredeck.model.messages import strings_in
from foredeck.model.names import identifiers


def names_in_view(plan: Plan, without: Collection[int]) -> set[str]:
    """The identifiers in everything that goes out, except in the messages `without`."""
    held: set[str] = set()
    for index in range(len(plan)):
        if index in without:
            continue
        blocks = plan.recipe(index)
        if blocks is None or any("keep" in block for block in blocks):
            held |= own_names(plan, index)
        else:
            plan.names.pop(index, None)  # most messages of a long session are folded for good
        if blocks:
            held |= _written_names(plan, index, blocks)
    return held


def own_names(plan: Plan, index: int) -> frozenset[str]:
    """Names in a message as the host has it; found once."""
    names = plan.names.get(index)
    if names is None:
        kept = plan.kept_names.get(index)
        item = plan.items[index]
        if kept is not None:
            names = frozenset(kept.split())
        else:
            names = identifiers(item.text) if item.kind == "result" else _names(item.blocks)
        plan.names[index] = names
    return names


def _written_names(plan: Plan, index: int, blocks: list[Block]) -> frozenset[str]:
    """Names in blocks that are not the host's own; found once, since they never change."""
    known, names = plan.written_names.get(index, (None, frozenset()))
    if known is not blocks:
        names = _names(block for block in blocks if "keep" not in block)
        plan.written_names[index] = blocks, names
    return names


def _names(blocks: Iterable[Block]) -> frozenset[str]:
    texts = (text for block in blocks for text in _texts(block))
    return frozenset[str]().union(*map(identifiers, texts))


def _texts(block: Block) -> Iterable[str]:
    kind = block.get("type")
    if kind == "toolCall":
        return strings_in(block.get("arguments"))
    return strings_in(block.get(kind)) if kind in ("text", "thinking") else ()

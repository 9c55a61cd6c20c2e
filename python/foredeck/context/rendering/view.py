"""Names that can be read in the prompt as it stands."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from foredeck.context.messages.conversation import Conversation
from foredeck.context.messages.identifiers import identifiers
from foredeck.context.messages.items import Block
from foredeck.context.messages.parts import Part
from foredeck.model.messages import strings_in


def names_in_view(conversation: Conversation, without: Collection[int]) -> set[str]:
    """The identifiers in everything that goes out, except in the messages `without`."""
    held: set[str] = set()
    for index, part in enumerate(conversation.parts):
        if index in without:
            continue
        blocks = part.blocks
        if blocks is None or any("keep" in block for block in blocks):
            held |= own_names(conversation, index)
        if blocks:
            held |= _part_names(part, blocks)
    return held


def own_names(conversation: Conversation, index: int) -> frozenset[str]:
    """Names in a message as the host has it; found once."""
    names = conversation.names.get(index)
    if names is None:
        kept = conversation.kept_names.get(index)
        item = conversation.items[index]
        if kept is not None:
            names = frozenset(kept.split())
        else:
            names = identifiers(item.text) if item.kind == "result" else _names(item.blocks)
        conversation.names[index] = names
    return names


def _part_names(part: Part, blocks: Iterable[Block]) -> frozenset[str]:
    """Names in a part's own blocks; found once, since a part stays as it is."""
    if part.names is None:
        own = [block for block in blocks if "keep" not in block]
        part.names = _names(own) if own else frozenset()
    return part.names


def _names(blocks: Iterable[Block]) -> frozenset[str]:
    texts = (text for block in blocks for text in _texts(block))
    return frozenset[str]().union(*map(identifiers, texts))


def _texts(block: Block) -> Iterable[str]:
    kind = block.get("type")
    if kind == "toolCall":
        return strings_in(block.get("arguments"))
    return strings_in(block.get(kind)) if kind in ("text", "thinking") else ()

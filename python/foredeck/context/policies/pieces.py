"""Pieces that can fold: long arguments, thinking, the middle of long texts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from foredeck.context.messages.items import Block, Item, text_block
from foredeck.context.plan.ops import FOLDABLE_ARGUMENT_CHARS, REASONING
from foredeck.context.plan.wires import RESPONSES_APIS
from foredeck.context.wording import folded_argument
from foredeck.model.documents import PASTE_CHARS

PieceKind = Literal["old", "argument", "thinking", "message", "answer"]

LONG_TEXTS: dict[str, tuple[int, int]] = {"user": (PASTE_CHARS, 1200), "assistant": (2000, 300)}
"""By speaker: the least length, and what stays of each end."""

OLD_NAMES = frozenset({"oldText", "old_text", "old_string", "old_str"})

Label = Callable[[str], int | None]
"""A call's handle by the provider's id."""

FoldText = Callable[[Item, str], str]
"""Replaces a long text, and makes its object."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece, by its number in the message from 1."""

    slot: int
    kind: PieceKind
    text: str
    call_id: str = ""
    sealed: bool = False
    """Bound by a provider's signature."""
    kept: int = 45
    """Characters left after folding, roughly."""

    @property
    def saving(self) -> int:
        """Characters saved, roughly."""
        return len(self.text) - self.kept


def pieces_of(item: Item) -> list[Piece]:
    """The pieces of a message, in order, without small arguments and short texts."""
    pieces: list[Piece] = []
    slot = 0
    for block in item.blocks:
        if block.get("type") == "thinking" and block.get("thinking"):
            slot += 1
            pieces.append(Piece(slot, "thinking", str(block["thinking"]), kept=0))
        elif _is_long(item, block):
            slot += 1
            sealed, remaining = _is_signed(item, block), 2 * LONG_TEXTS[item.kind][1] + 60
            speaker: PieceKind = "message" if item.kind == "user" else "answer"
            pieces.append(Piece(slot, speaker, str(block["text"]), sealed=sealed, kept=remaining))
        elif block.get("type") == "toolCall":
            for key, text in _long_strings(block.get("arguments")):
                slot += 1
                kind: PieceKind = "old" if key in OLD_NAMES else "argument"
                sealed = bool(block.get("thoughtSignature"))
                pieces.append(Piece(slot, kind, text, str(block.get("id") or ""), sealed))
    return pieces


def folded_blocks(
    item: Item, slots: Collection[int], label: Label, fold_text: FoldText | None = None
) -> list[Block] | None:
    """The message with these pieces folded; None if nothing would be left or a call has no handle.

    Without `fold_text` texts stay, enough to test the rest.
    """
    recipe: list[Block] = []
    slot = 0
    for number, block in enumerate(item.blocks):
        if block.get("type") == "thinking":
            slot += bool(block.get("thinking"))
            folded = REASONING in slots or (block.get("thinking") and slot in slots)
            if not folded:
                recipe.append({"keep": number})
        elif block.get("type") == "toolCall":
            folder = _ArgumentFolder(slot, slots, label(str(block.get("id") or "")))
            arguments = _map(block.get("arguments"), "", folder.fold)
            slot = folder.slot
            if folder.nameless:
                return None
            changed = _sorted({**block, "arguments": arguments})
            recipe.append(changed if folder.folded else {"keep": number})
        elif _is_long(item, block):
            slot += 1
            folds = fold_text if slot in slots else None
            recipe.append(_shortened(item, block, folds) if folds else {"keep": number})
        else:
            recipe.append({"keep": number})
    return recipe if any(_tells(item, block) for block in recipe) else None


def _is_long(item: Item, block: Block) -> bool:
    least, _ = LONG_TEXTS.get(item.kind, (0, 0))
    return bool(least) and block.get("type") == "text" and len(str(block.get("text"))) >= least


def _is_signed(item: Item, block: Block) -> bool:
    # OpenAI's wires keep the id and the phase of the output item where others keep a signature.
    return bool(block.get("textSignature")) and item.meta.get("api") not in RESPONSES_APIS


def _shortened(item: Item, block: Block, fold_text: FoldText) -> Block:
    folded = text_block(fold_text(item, str(block["text"])))
    id = block.get("textSignature")
    return _sorted({**folded, "textSignature": id}) if id else folded


class _ArgumentFolder:
    def __init__(self, slot: int, slots: Collection[int], ordinal: int | None) -> None:
        self.slot = slot
        self.folded = False
        self.nameless = False
        self._slots = slots
        self._ordinal = ordinal

    def fold(self, _key: str, text: str) -> str | None:
        self.slot += 1
        if self.slot not in self._slots:
            return None
        if self._ordinal is None:
            self.nameless = True
            return None
        self.folded = True
        # A string stays a string, so that the arguments are still valid for their tool. The shim
        # refuses a call whose arguments carry this marker: models imitate what they see.
        return folded_argument(self._ordinal, len(text))


def _long_strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Long strings in arguments with their keys, in `_map`'s order."""
    if isinstance(value, str):
        if len(value) > FOLDABLE_ARGUMENT_CHARS:
            yield key, value
    elif isinstance(value, list):
        for item in value:
            yield from _long_strings(item, key)
    elif isinstance(value, dict):
        for name in sorted(value):
            yield from _long_strings(value[name], name)


def _map(value: Any, key: str, visit: Callable[[str, str], str | None]) -> Any:
    if isinstance(value, str):
        if len(value) <= FOLDABLE_ARGUMENT_CHARS:
            return value
        replaced = visit(key, value)
        return value if replaced is None else replaced
    if isinstance(value, list):
        return [_map(item, key, visit) for item in value]
    if isinstance(value, dict):
        return {name: _map(value[name], name, visit) for name in sorted(value)}
    return value


def _sorted(value: Any) -> Any:
    # A stored block comes back like that after a restart, and the prompt must have the same bytes.
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _tells(item: Item, block: Block) -> bool:
    own = item.blocks[block["keep"]] if "keep" in block else block
    if own.get("type") == "text":
        return bool(str(own.get("text") or "").strip())
    return own.get("type") != "thinking"

"""How one message goes out: a recipe that is decided once and then kept.

A recipe is a list of blocks. `{"keep": k}` stands for block `k` of the host's own message, any
other block is sent as it is. No recipe means: as the host has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from foredeck.context.messages.items import Block, Item, block_chars
from foredeck.model.messages import pack, unpack

Form = Literal["host", "full", "same", "diff", "reference", "note", "dropped", "folded"]
"""`host`: untouched. `full`: the content with its handle. `same` and `diff`: told by means of a
copy that stands earlier. `reference`: folded to a line. `note`: a tool's short answer. `dropped`:
left out, with no blocks at all. `folded`: an assistant message without some of its pieces."""

SHOWING = frozenset({"full", "diff", "host"})
"""Forms in which the content can be read."""


SEALED = -1
"""In place of a piece's number: all reasoning of an assistant message."""


class PieceRef(NamedTuple):
    """A piece of content that can be folded: a message, and which piece of it.

    Slot 0 is the content of a tool result; other messages count their pieces from 1
    (`pieces.py`). `REFRESHED` stands for arguments that fold once a result is brought up to date.
    """

    message: int
    slot: int = 0


REFRESHED = -2
"""Slot of a result that could show a newer version of its file (`refresh.py`)."""


@dataclass(slots=True)
class Part:
    """The rendering of one message."""

    form: Form = "host"
    blocks: list[Block] | None = None
    subject: int | None = None
    """Ordinal of the object whose content the message carries."""
    version: int | None = None
    """Which version of the subject, as an ordinal of the session."""
    base: int | None = None
    """Index of the earlier message that a `same` or `diff` leans on."""
    text_hash: str | None = None
    """Of the content that a reader can know from this part (and its base)."""
    chars: int = 0
    slots: tuple[int, ...] = ()
    """Which pieces of an assistant message are folded; `SEALED` among them: all reasoning."""
    names: frozenset[str] | None = None
    """Identifiers in blocks that are not the host's own, as far as they were looked for."""

    @property
    def shows(self) -> bool:
        """Whether the subject's content can be read here (with the base, for a difference)."""
        return self.subject is not None and self.form in SHOWING

    @property
    def carries(self) -> bool:
        """Whether the message has an object's content of its own, in view or not."""
        return self.subject is not None and self.form != "same"

    def to_row(self, index: int, blobs: dict[str, bytes]) -> list[Any]:
        """The part as a call record keeps it; long texts go to `blobs`."""
        packed = None if self.blocks is None else pack(self.blocks, blobs)
        row = [index, self.form, packed, self.subject, self.version, self.base, self.text_hash]
        return [*row, list(self.slots)] if self.slots else row

    @staticmethod
    def from_row(row: list[Any], blob: Callable[[str], bytes]) -> tuple[int, Part]:
        """The inverse of `to_row`; `chars` is left for the caller to compute."""
        index, form, packed, subject, version, base, text_hash, *slots = row
        blocks = None if packed is None else unpack(packed, blob)
        folded = tuple(slots[0]) if slots else ()
        return index, Part(form, blocks, subject, version, base, text_hash, slots=folded)


def apply_recipe(recipe: list[Block] | None, own: list[Block]) -> list[Block]:
    """The blocks that go out, given the message's own."""
    if recipe is None:
        return own
    return [own[block["keep"]] if "keep" in block else block for block in recipe]


def keep_all(item: Item) -> list[Block]:
    """Recipe blocks for everything in the message that a provider accepts (no empty text)."""
    return [
        {"keep": number}
        for number, block in enumerate(item.blocks)
        if block.get("type") != "text" or block.get("text")
    ]


def recipe_chars(recipe: list[Block] | None, item: Item) -> int:
    """Characters that the model reads when `item` goes out by `recipe`."""
    if recipe is None:
        return item.chars
    return sum(
        block_chars(item.blocks[block["keep"]]) if "keep" in block else block_chars(block)
        for block in recipe
    )

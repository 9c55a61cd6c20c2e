"""How one message goes out: a recipe that is decided once and then kept.

A recipe is a list of blocks. `{"keep": k}` stands for block `k` of the host's own message, any
other block is sent as it is. No recipe means: as the host has it.

It is kept rather than made again: the provider finds in its cache only the very bytes that it was
sent, and another version or configuration of foredeck might write others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from foredeck.context.messages.items import Block, Item, block_chars
from foredeck.model.call_changes import Form, PartRow
from foredeck.model.messages import pack, unpack

SHOWING = frozenset({"full", "diff", "host"})
"""Forms in which the content can be read."""

GONE = frozenset({"dropped", "observed"})
"""Forms of messages that do not go out."""

FOLDABLE_ARGUMENT_CHARS = 200
"""Only a longer argument of a tool call ever folds: a marker is almost as long as this."""

SEALED = -1
"""In place of a piece's number: all reasoning of an assistant message."""


class PieceRef(NamedTuple):
    """A piece of content that can be folded: a message, and which piece of it.

    Slot 0 is the content of a tool result; other messages count their pieces from 1
    (`policies/pieces.py`). `REFRESHED` stands for a read that is brought up to date, together with
    the arguments that fold then.
    """

    message: int
    slot: int = 0


REFRESHED = -2
"""Slot of a result that could show a newer version of its file (`rewriting/refresh.py`)."""

REPLACED = -3
"""Slot of the first message of a stretch that a text may stand in for
(`rewriting/replacing.py`)."""


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
    """Index of the earlier message that a `same` or `diff` refers to."""
    text_hash: str | None = None
    """Of the content that a reader can know from this part (and its base)."""
    chars: int = 0
    slots: tuple[int, ...] = ()
    """Which pieces of the message are folded; `SEALED` among them: all its reasoning."""
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

    def to_row(self, index: int, blobs: dict[str, bytes]) -> PartRow:
        """The part of message `index` as a call record keeps it; long texts go to `blobs`."""
        packed = None if self.blocks is None else pack(self.blocks, blobs)
        about = (self.subject, self.version, self.base, self.text_hash)
        return PartRow(index, self.form, packed, *about, slots=self.slots)

    @staticmethod
    def from_row(row: PartRow, blob: Callable[[str], bytes]) -> Part:
        """The inverse of `to_row`; `chars` is left for the caller to compute."""
        blocks = None if row.packed is None else unpack(row.packed, blob)
        about = (row.subject, row.version, row.base, row.text_hash)
        return Part(row.form, blocks, *about, slots=row.slots)


def form_as_host(form: Form, subject: int | None) -> Form:
    """The form of a message of ours that went out as the host has it after all."""
    # The host's own text shows all of the object, whatever of it had gone out before.
    return "host" if subject is not None or form in ("folded", *GONE) else form


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

"""What becomes of each of the host's messages on its way out, kept, rewritten or left out, and what
foredeck says between them.

An operation is decided once and then kept: the provider finds in its cache only the very bytes that
it was sent. Operations never change; `Plan` replaces them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from foredeck.context.messages.items import Block, Item, block_chars

FOLDABLE_ARGUMENT_CHARS = 200
"""Only a longer argument of a tool call ever folds: a marker is almost as long as this."""

REASONING = -1
"""In place of a piece's number: all reasoning of an assistant message."""

CURRENT = -2
"""Slot of a result that could show a newer version of its file (`rewriting/current.py`)."""

COVERED = -3
"""Slot of the first message of a span that an observation may replace
(`rewriting/replacing.py`)."""


class PieceRef(NamedTuple):
    """A piece of content that can be folded: a message, and which piece of it.

    Slot 0 is the content of a tool result; other messages count their pieces from 1
    (`policies/pieces.py`). `CURRENT` is a read that can be brought up to date, together with
    the arguments that fold then.
    """

    message: int
    slot: int = 0


@dataclass(frozen=True, slots=True)
class Shown:
    """The object whose content a message carries, in view or folded."""

    object: int
    """Its handle."""
    version: int | None = None
    """Which version of it, as the session counts them."""
    text_hash: str | None = None
    """Of the text that can be read in the message (and its base); None where it is cut short."""


Form = Literal["host", "full", "same", "diff", "reference", "note", "folded", "omitted"]
"""`host`: all that the host has, with lines of ours where there are blocks. `full`: content under
its handle, if it needs one. `same`, `diff`: said by reference to an earlier message, the base.
`reference`: folded to a line. `note`: the short answer of a context tool. `folded`: without some
pieces of the message. `omitted`: left out; a message of ours may cover it (`Say.covers`)."""


@dataclass(frozen=True, slots=True)
class Op:
    """What becomes of a message. Without arguments: it goes out as the host has it. That says
    nothing of `Branch.kept`: what goes out as it came may be released all the same."""

    # Kept as blocks, and not as what they were made from: another version or configuration of
    # foredeck might write other bytes.

    form: Form = "host"
    blocks: list[Block] | None = None
    """What goes out in place of the message's own blocks; None: these. `{"keep": k}` among them is
    block `k` of the host's message, any other block is sent as it is."""
    shown: Shown | None = None
    base: int | None = None
    """Index of the earlier message that `same`, `diff` or `note` refers to."""
    folded: tuple[int, ...] = ()
    """Which pieces of the message are folded; `REASONING` among them: all its reasoning."""

    @property
    def subject(self) -> int | None:
        """Handle of the object whose content the message carries."""
        return None if self.shown is None else self.shown.object

    @property
    def version(self) -> int | None:
        """Which version of the subject."""
        return None if self.shown is None else self.shown.version

    @property
    def text_hash(self) -> str | None:
        """Hash of the subject's text, as it can be read here."""
        return None if self.shown is None else self.shown.text_hash

    @property
    def shows(self) -> bool:
        """Whether the subject's content can be read here, with the base for a difference."""
        return self.shown is not None and self.form in ("host", "full", "diff")

    @property
    def carries(self) -> bool:
        """Whether the message has an object's content of its own, in view or not."""
        return self.shown is not None and self.form != "same"


def omit(shown: Shown | None = None) -> Op:
    """The operation for a message that does not go out."""
    return Op("omitted", [], shown)


def as_host(op: Op) -> Op:
    """The operation for a message of a call that went out without us: the host's own text shows all
    of the object, whatever of it had gone out before. An answer of our own tools stays one."""
    return replace(op, blocks=None) if op.form == "note" else Op(shown=op.shown)


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


Purpose = Literal[
    "head", "layout", "list_start", "summary", "observation", "calls", "turn_end", "no_result"
]
"""`head`: the block before the chat. `layout`: what a layout keeps apart from the chat.
`list_start`: a line at the start of the list, on a history that was cut or a summary of the
host's. `summary`, `observation`, `calls`: a text in place of the messages that it covers: of all
chat up to a message, of a span that was observed, of a run of folded calls. `turn_end`: what ended
a turn. `no_result`: the answer to a call that got none."""

SPANNING: frozenset[Purpose] = frozenset({"observation", "calls"})
"""They take the place of a span in the middle of the chat. Its last message counts their
characters."""

LASTING: frozenset[Purpose] = SPANNING | {"turn_end", "layout"}
"""They keep their place whatever else the list needs: signed reasoning may be bound to them."""


class MessageSpan(NamedTuple):
    """Messages of the host's in a row, by their indexes."""

    first: int
    until: int
    """The one after the last."""

    def holds(self, other: MessageSpan) -> bool:
        """Whether another span lies within this one."""
        return self.first <= other.first and other.until <= self.until


@dataclass(frozen=True, slots=True)
class Say:
    """A message of foredeck's own."""

    purpose: Purpose
    blocks: list[Block]
    covers: MessageSpan | None = None
    """The messages whose place it takes. Some of them may still go out, in their own places."""
    object: str | None = None
    """Id of the object that holds its text: a compaction, an observation or a reflection."""
    call_id: str = ""
    """`no_result`: the provider's id of the call that it answers."""
    tool: str = ""
    """`no_result`: the tool that was called."""
    head_tokens: int = 0
    """`head`: how many tokens it could have had."""

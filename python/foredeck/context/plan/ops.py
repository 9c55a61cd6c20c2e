"""Operations on host messages, and foredeck's own messages between.

Decided once and immutable, since the cache finds only identical bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from foredeck.context.messages.items import Block, Item, block_chars

FOLDABLE_ARGUMENT_CHARS = 200
"""Shorter arguments never fold: a marker is almost as long."""

REASONING = -1
"""Slot: all reasoning of an assistant message."""

CURRENT = -2
"""Slot: a result that could show a newer version."""

COVERED = -3
"""Slot: the first message a stand-in may replace."""


class PieceRef(NamedTuple):
    """Slot 0 is a result's content; other pieces count from 1."""

    message: int
    slot: int = 0


@dataclass(frozen=True, slots=True)
class Shown:
    """The object that a message carries, in view or folded."""

    object: int
    """Its handle."""
    version: int | None = None
    """The session's number of the version."""
    text_hash: str | None = None
    """Of the text readable in the message (with its base); None if cut."""


Form = Literal["host", "full", "same", "diff", "reference", "note", "folded", "omitted"]
"""`host`: as the host has it, with added lines if there are blocks. `full`: content under its
handle. `same`, `diff`: refers to an earlier message, the base. `reference`: folded to a line.
`note`: a context tool's short answer. `folded`: without some pieces. `omitted`: left out, perhaps
covered by a say (`Say.covers`)."""


@dataclass(frozen=True, slots=True)
class Op:
    """What becomes of a message; by default it goes out as the host has it."""

    # Kept as blocks, and not as what they were made from: another version or configuration of
    # foredeck might write other bytes.

    form: Form = "host"
    blocks: list[Block] | None = None
    """None: the message's own. `{"keep": k}` is block `k` of it."""
    shown: Shown | None = None
    base: int | None = None
    """The message that `same`, `diff` or `note` refers to."""
    folded: tuple[int, ...] = ()
    """Folded pieces; `REASONING`: all reasoning."""

    @property
    def subject(self) -> int | None:
        """Handle of the object that the message carries."""
        return None if self.shown is None else self.shown.object

    @property
    def version(self) -> int | None:
        """Version of the subject."""
        return None if self.shown is None else self.shown.version

    @property
    def text_hash(self) -> str | None:
        """Hash of the subject's text, as readable here."""
        return None if self.shown is None else self.shown.text_hash

    @property
    def shows(self) -> bool:
        """Whether the subject can be read here, with the base for a difference."""
        return self.shown is not None and self.form in ("host", "full", "diff")

    @property
    def carries(self) -> bool:
        return self.shown is not None and self.form != "same"

    def leaves_out(self, block: int) -> bool:
        """Whether one of the message's own blocks does not go out."""
        if self.blocks is None or self.form == "omitted":
            return self.form == "omitted"
        return all(each.get("keep") != block for each in self.blocks)


def omit(shown: Shown | None = None) -> Op:
    """Leaves a message out."""
    return Op("omitted", [], shown)


def as_host(op: Op) -> Op:
    """The operation of a call without foredeck; answers of foredeck's own tools remain notes."""
    return replace(op, blocks=None) if op.form == "note" else Op(shown=op.shown)


def apply_recipe(recipe: list[Block] | None, own: list[Block]) -> list[Block]:
    """What goes out, given the message's own blocks."""
    if recipe is None:
        return own
    return [own[block["keep"]] if "keep" in block else block for block in recipe]


def keep_all(item: Item) -> list[Block]:
    """A recipe without empty texts, which providers refuse."""
    return [
        {"keep": number}
        for number, block in enumerate(item.blocks)
        if block.get("type") != "text" or block.get("text")
    ]


def recipe_chars(recipe: list[Block] | None, item: Item) -> int:
    if recipe is None:
        return item.chars
    return sum(
        block_chars(item.blocks[block["keep"]]) if "keep" in block else block_chars(block)
        for block in recipe
    )


Purpose = Literal[
    "head", "layout", "list_start", "summary", "observation", "calls", "turn_end", "no_result"
]
"""`head`: the block before the chat. `layout`: text that a layout keeps apart. `list_start`: a line
at the start, on a cut history or the host's summary. `summary`, `observation`, `calls`: replaces
all chat up to a message, an observed span, or a run of folded calls. `turn_end`: ends a turn.
`no_result`: answers a call that got no result."""

SPANNING: frozenset[Purpose] = frozenset({"observation", "calls"})
"""Purposes that replace a span within the chat."""

LASTING: frozenset[Purpose] = SPANNING | {"turn_end", "layout"}
"""Keep their place: signed reasoning may be bound to them."""


class MessageSpan(NamedTuple):
    first: int
    until: int
    """The one after the last."""

    def holds(self, other: MessageSpan) -> bool:
        return self.first <= other.first and other.until <= self.until


@dataclass(frozen=True, slots=True)
class Say:
    """A message of foredeck's own."""

    purpose: Purpose
    blocks: list[Block]
    covers: MessageSpan | None = None
    """Messages it replaces; some may still go out."""
    object: str | None = None
    """Id of the compaction, observation or reflection."""
    call_id: str = ""
    """`no_result`: the provider's id of the call."""
    tool: str = ""
    """`no_result`: the tool."""
    head_tokens: int = 0
    """`head`: its limit in tokens."""

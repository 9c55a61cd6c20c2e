"""Policies: which content may leave the prompt at the next rebase. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from foredeck.context.messages.items import Block, Item, text_block
from foredeck.context.plan.ops import FOLDABLE_ARGUMENT_CHARS, REASONING, PieceRef
from foredeck.context.plan.wires import RESPONSES_APIS
from foredeck.context.wording import folded_argument
from foredeck.model.documents import PASTE_CHARS
from foredeck.model.own_tools import OWN_TOOLS

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


class ActiveContent(NamedTuple):
    ref: PieceRef
    ordinal: int
    """The object's handle."""
    age_in_turns: int
    """0 for the newest user turn."""
    recency_rank: int
    """From 1 for its turn's newest result, without context tools."""
    chars: int
    tool: str
    age: int = 0
    """Model calls since the last use; like `idle` and `of_edited` only if uses are tracked."""
    idle: bool = False
    """Whether the newest user turn has not used it."""
    of_edited: bool = False
    """Whether the session edits the file it shows."""

    @property
    def message(self) -> int:
        """Its index in the list."""
        return self.ref.message

    @property
    def is_output(self) -> bool:
        """Whether a tool printed it: neither a file's text nor activated."""
        return self.tool not in ("read", *OWN_TOOLS)


class FoldablePiece(NamedTuple):
    """A long argument, thinking, or the middle of a text from an earlier turn."""

    ref: PieceRef
    kind: PieceKind
    chars: int
    age: int
    idle: bool
    of_edited: bool
    earlier_turn: bool
    """Whether it precedes the newest user message."""


@dataclass(frozen=True, slots=True)
class History:
    """A policy's input for one call."""

    contents: Sequence[ActiveContent]
    """Foldable contents, oldest first."""
    turn: int
    """The newest user turn, from 1."""
    time_ms: int
    """Time of the request, in milliseconds since 1970."""
    cold: bool
    """Whether the cache holds nothing of the prompt."""
    state: Mapping[str, Any]
    """From the policy's last decision on this branch."""
    pieces: Sequence[FoldablePiece] = ()
    """If the wire allows it and uses are tracked."""
    closing: bool = False
    """Whether the next turn is expected to bind what precedes it."""


@dataclass(frozen=True, slots=True)
class UseRule:
    """What counts as a use, beside edits and mentions of the path."""

    min_names: int = 2
    """Telling identifiers that make a use."""
    max_holders: int = 2
    """An identifier in more pieces tells nothing."""
    refresh: bool = False
    """Whether a rebase updates reads of edited files."""
    at_work: int = 0
    copies: bool = False
    """Whether a full rewrite shows one current copy."""
    copy_chars: int = 0
    """Longest file with such a copy."""
    runs_after: int = 0
    """Calls after which a folded call joins a run; 0: never."""
    edits_after: int = 0
    """Likewise for a short edit."""
    turns_after: int = 0
    """Likewise for what was said."""
    newest: int = 0
    prepared: bool = False
    """Whether a turn's reads stay until it edits them."""


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    released: frozenset[int] = frozenset()
    """Messages whose content is given up for good; it becomes inactive."""
    state: Mapping[str, Any] = field(default_factory=dict)
    foldable: frozenset[PieceRef] = frozenset()
    """Content that may go now, but stays active until it does; decided anew at every call."""


@runtime_checkable
class Policy(Protocol):
    """Decides what may go."""

    @property
    def name(self) -> str:
        """Name in configuration and call records."""

    @property
    def use_rule(self) -> UseRule | None:
        """How uses are tracked for it, at a cost per call."""

    def decide(self, history: History) -> PolicyDecision: ...

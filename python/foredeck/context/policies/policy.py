"""Policies: which content may leave the prompt at the next rebase. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from foredeck.context.plan.ops import PieceRef
from foredeck.context.policies.pieces import PieceKind
from foredeck.model.call_values import CHARS_PER_TOKEN
from foredeck.model.own_tools import OWN_TOOLS


class ActiveContent(NamedTuple):
    ref: PieceRef
    ordinal: int
    """The object's handle."""
    age_in_turns: int
    """0 for the newest user turn."""
    recency_rank: int
    """From 1 for its turn's newest result, without context tools."""
    chars: int
    """As its message goes out: under `pools` those of a line."""
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
    """Where the wire and the settings allow it, and uses are tracked."""
    precedes_bound_turn: bool = False
    """Whether the reasoning of the turn that begins will bind what precedes it."""
    tokens: int = 0
    """Of the prompt if nothing more folds; under `pools` without the contents behind the chat."""
    window: int | None = None
    """Tokens that the model takes; None if unknown."""
    chars_per_token: float = CHARS_PER_TOKEN
    """Of this model, by its reports."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a policy asks for beside its decisions: uses are tracked, and each rule by its name."""

    min_names: int = 2
    """Telling identifiers that make a use, beside edits and mentions of the path."""
    max_holders: int = 2
    """An identifier in more pieces tells nothing."""
    prepared: bool = False
    """Whether a turn's reads stay until it edits them."""
    newest: int = 0
    """Newest results that are not offered, and fold last where the prompt does not fit."""
    refresh: bool = False
    """Whether a rebase updates reads of edited files."""
    runs_after: int = 0
    """Calls after which a folded call joins a run; 0: never."""
    edits_after: int = 0
    """Likewise for a short edit."""
    turns_after: int = 0
    """Likewise for what was said."""


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
    def rules(self) -> Rules | None:
        """None: no uses are tracked, no pieces offered, and no rule holds."""

    def decide(self, history: History) -> PolicyDecision: ...

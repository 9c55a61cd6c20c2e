"""Which content may leave the prompt. Policies are pure: history in, decision out.

A policy names messages whose content it no longer wants; it never touches the prompt. The content
leaves at the next rebase. Pinned objects, and results that answer the newest assistant message, are
never offered to a policy. foredeck's own are in `built_in.py`; docs/policies.md says how another
package adds one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from foredeck.context.plan.ops import PieceRef
from foredeck.context.policies.pieces import PieceKind


class ActiveContent(NamedTuple):
    """A message that shows an object's content and may be folded."""

    ref: PieceRef
    """Its place, as a decision names it."""
    ordinal: int
    """The object's handle."""
    age_in_turns: int
    """0 for the newest user turn."""
    recency_rank: int
    """Among the results of its turn, 1 for the newest; those of the context tools left out."""
    chars: int
    """Of the message as it is in the prompt."""
    age: int = 0
    """Model calls since its last use. This, `idle` and `of_edited` are filled in only where uses
    are tracked."""
    idle: bool = False
    """Whether the newest user turn has not used it."""
    of_edited: bool = False
    """Whether it shows a file that the session edits."""
    is_output: bool = False
    """Whether a command, a search or another tool printed it, so that it is neither the text of a
    file nor what the model has activated."""

    @property
    def message(self) -> int:
        """Its place in the list of messages."""
        return self.ref.message


class FoldablePiece(NamedTuple):
    """A piece of a message that may be folded: a long argument, thinking, or the middle of a long
    text; of the newest turn no text."""

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
    """What a policy is given for one call."""

    contents: Sequence[ActiveContent]
    """Foldable contents, oldest first."""
    turn: int
    """The newest user turn, counted from 1."""
    time_ms: int
    """When the host asked for the call, since 1970."""
    cold: bool
    """Whether the provider's cache holds nothing of the prompt."""
    state: Mapping[str, Any]
    """What the policy's last decision on this branch left behind."""
    pieces: Sequence[FoldablePiece] = ()
    """Foldable pieces of messages, where the wire allows it and uses are tracked."""
    closing: bool = False
    """Whether a turn begins in which, by what the last one was like, sealed reasoning will keep
    everything before it as it is."""


@dataclass(frozen=True, slots=True)
class UseRule:
    """What counts as a use of content, beside an edit of its text and a mention of its path."""

    min_names: int = 2
    """How many telling identifiers in an answer make a use of what holds them."""
    max_holders: int = 2
    """An identifier that more pieces hold says nothing about where it was taken from."""
    refresh: bool = False
    """Whether reads of edited files are brought up to date at a rebase."""
    at_work: int = 0
    """How many files, those edited last, are at work."""
    copies: bool = False
    """Whether there is one current copy of each of them where all is written anew."""
    copy_chars: int = 0
    """The longest file of which there is one."""
    runs_after: int = 0
    """After how many more calls a call in a run that is folded becomes part of its line; 0: runs
    stay call by call."""
    edits_after: int = 0
    """The same for an edit that is so short that it never folds."""
    turns_after: int = 0
    """The same for what was said in a turn; 0: it stays."""
    newest: int = 0
    """How many of the newest results never fold as long as the prompt fits."""
    prepared: bool = False
    """Whether what a turn has read stays until it edits it, while the cache is warm."""


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """What a policy decides, and the state that it wants to find again."""

    released: frozenset[int] = frozenset()
    """Messages whose content is not wanted any more, for good: it is inactive from now on."""
    state: Mapping[str, Any] = field(default_factory=dict)
    foldable: frozenset[PieceRef] = frozenset()
    """Content that may go now. It stays active until it goes, and is asked about again at every
    call."""


@runtime_checkable
class Policy(Protocol):
    """Decides what may go."""

    @property
    def name(self) -> str:
        """As the configuration and call records have it."""

    @property
    def use_rule(self) -> UseRule | None:
        """How last uses are tracked for it, which costs time at each call; None: not at all."""

    def decide(self, history: History) -> PolicyDecision:
        """What may go, given everything that is known."""

"""Policies, built in or installed: which content may leave the prompt at the next rebase. Pure.

The constants of `adaptive` come from replays (docs/economics.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from foredeck.config.model import (
    AdaptiveSection,
    Config,
    SeedWindowSection,
    check_policy,
    installed_policies,
)
from foredeck.context.plan.ops import PieceRef
from foredeck.context.policies.pieces import PieceKind
from foredeck.errors import ConfigError
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


# A rough rate will do: sizes are only compared with each other.
ROUGH_CHARS_PER_TOKEN = 4

REFERENCE_TOKENS = 1000
"""Content of this size stays for its nominal age."""

SHORTEST_FACTOR = 0.3
"""Least share of patience left to large content."""


class SeedWindow:
    """Keeps the newest `per_turn` results in each of the newest `turns` user turns.

    An activation restarts its window. Long messages fold as `adaptive` says.
    """

    name = "seed-window"

    def __init__(self, window: SeedWindowSection, adaptive: Adaptive) -> None:
        self._window = window
        self._adaptive = adaptive
        rules = adaptive.rules
        self.rules = Rules(
            runs_after=rules.runs_after,
            edits_after=rules.edits_after,
            turns_after=rules.turns_after,
        )

    def decide(self, history: History) -> PolicyDecision:
        per_turn, turns = self._window.per_turn, self._window.turns
        released = frozenset(
            content.message
            for content in history.contents
            if content.age_in_turns >= turns or content.recency_rank > per_turn
        )
        return PolicyDecision(released, foldable=self._adaptive.unused_messages(history))


class KeepAll:
    """Gives nothing up, for comparisons."""

    name = "keep-all"
    rules = None

    def decide(self, history: History) -> PolicyDecision:
        del history
        return PolicyDecision()


class Adaptive:
    """Folds what has been unused for as long as its size is worth."""

    name = "adaptive"

    def __init__(self, constants: AdaptiveSection | None = None) -> None:
        self._constants = constants or AdaptiveSection()
        self._factors: dict[int, float] = {}
        constants = self._constants
        self.rules = Rules(
            refresh=True,
            runs_after=constants.fold_runs_after,
            edits_after=math.ceil(constants.patience_edits * constants.idle_factor),
            turns_after=constants.fold_turns_after if constants.fold_answers else 0,
            newest=constants.newest_results,
            prepared=not constants.fold_prepared,
        )

    def decide(self, history: History) -> PolicyDecision:
        """Lets fold what has been unused for too long."""
        gone = {h.ref for h in history.contents if self._dead_result(h, history)}
        gone |= {p.ref for p in history.pieces if self._dead_piece(p, history)}
        return PolicyDecision(foldable=frozenset(gone))

    def unused_messages(self, history: History) -> frozenset[PieceRef]:
        """Long messages of the user that nothing uses any more."""
        messages = (piece for piece in history.pieces if piece.kind == "message")
        return frozenset(piece.ref for piece in messages if self._is_unused(piece, history))

    def _is_unused(self, piece: FoldablePiece, history: History) -> bool:
        patience = self._constants.patience
        idle, cold = self._idle_factor(piece.idle), self._constants.cold_factor
        return self._over(piece.age, piece.chars, patience, idle, history, cold)

    def _dead_result(self, content: ActiveContent, history: History) -> bool:
        constants = self._constants
        base, idle = constants.patience, self._idle_factor(content.idle)
        if content.of_edited:
            base = constants.patience_edited
        elif content.is_output:
            # Hardly any later edit is of it, and its digest holds the names that are used again.
            idle = constants.idle_output if content.idle else 1.0
        cold = self._cold_factor(content.of_edited)
        return self._over(content.age, content.chars, base, idle, history, cold)

    def _idle_factor(self, idle: bool) -> float:
        return self._constants.idle_factor if idle else 1.0

    def _cold_factor(self, of_edited: bool) -> float:
        """Patience left by a cold cache: all for edited files."""
        return 1.0 if of_edited else self._constants.cold_factor

    def _dead_piece(self, piece: FoldablePiece, history: History) -> bool:
        constants = self._constants
        if piece.kind == "thinking":
            return piece.earlier_turn
        if piece.kind == "message":
            return self._is_unused(piece, history)
        if piece.kind == "answer":
            return constants.fold_answers and self._is_unused(piece, history)
        if piece.kind == "old":
            return True
        base = constants.patience_edits if piece.of_edited else constants.patience_arguments
        idle, cold = self._idle_factor(piece.idle), self._cold_factor(piece.of_edited)
        return self._over(piece.age, piece.chars, base, idle, history, cold)

    def _over(
        self, age: int, chars: int, base: float, idle: float, history: History, cold_factor: float
    ) -> bool:
        factor = self._factors.get(chars, 0.0)
        if not factor:
            # How many patiences content of that size is worth; kept, since it never changes.
            size = max(1.0, chars / ROUGH_CHARS_PER_TOKEN)
            factor = max(SHORTEST_FACTOR, math.sqrt(REFERENCE_TOKENS / size))
            factor = self._factors[chars] = min(self._constants.longest_factor, factor)
        factor *= idle
        if history.cold:
            factor *= cold_factor
        elif history.precedes_bound_turn:
            factor *= self._constants.cold_factor
        return age >= base * factor


POLICIES: dict[str, Callable[[Config], Policy]] = {
    "seed-window": lambda config: SeedWindow(config.seed_window, Adaptive(config.adaptive)),
    "keep-all": lambda _config: KeepAll(),
    "adaptive": lambda config: Adaptive(config.adaptive),
}


def make_policy(name: str, config: Config | None = None) -> Policy:
    """Raises `ConfigError` for an unknown name, or if an installed policy cannot be made."""
    config = config or Config()
    if name in POLICIES:
        return POLICIES[name](config)
    try:
        return _make_installed(check_policy(name), config.policy_options)
    except ValueError as error:
        raise ConfigError(f"policy: {error}") from None


def _make_installed(name: str, options: Mapping[str, Any]) -> Policy:
    entry = installed_policies()[name]
    package = entry.dist.name if entry.dist else entry.value
    try:
        policy = entry.load()(**options)
    except Exception as error:
        raise ConfigError(f"Policy {name!r} of {package} cannot be made: {error!r}.") from error
    if not isinstance(policy, Policy):
        raise ConfigError(f"Policy {name!r} of {package} lacks name, rules or decide.")
    return policy

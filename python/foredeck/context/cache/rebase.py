"""When the prompt may be rewritten, and from where.

Between rebases not a byte of what was sent changes. This module holds the rules that need no
prices: a rebase is free while the cache is cold, and it must come at the high-water mark. When
one pays is decided in `economics.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from foredeck.context.messages.items import Item
from foredeck.context.plan.ops import REASONING
from foredeck.context.plan.plan import Plan

RebaseReason = Literal[
    "cold",
    "model",
    "history",
    "layout",
    "withdrawn",
    "high-water",
    "pays",
    "look-back",
    "no-cache",
]


DEFAULT_TTL_S = 300


@dataclass(frozen=True, slots=True)
class RebaseInputs:
    """What decides whether a rebase is free or must be."""

    cold: bool
    model_changed: bool
    history_replaced: bool
    tokens: int
    """Estimate of the whole prompt as it would go out without a rebase."""
    window: int | None
    """The model's context window in tokens, None where it is not known."""
    layout_changed: bool = False
    """What was sent before was written by another layout."""
    withdrawn: bool = False
    """The head says what may not be said any more."""

    @property
    def rewrites_all(self) -> bool:
        """Whether nothing of what was sent before goes out again, whatever is folded."""
        return self.history_replaced or self.layout_changed or self.withdrawn

    @property
    def lost(self) -> bool:
        """Whether the provider's cache holds nothing of what was sent before."""
        return self.cold or self.model_changed or self.rewrites_all


_HIGH, _LOW = 0.85, 0.60


@dataclass(frozen=True, slots=True)
class WaterMarks:
    """Shares of the context window: above `high` content must go, down to `low`."""

    high: float = _HIGH

    @property
    def low(self) -> float:
        """So far below `high` that the prompt does not pass that again at the next results."""
        return _LOW * self.high / _HIGH


def reason_to_rebase(inputs: RebaseInputs, marks: WaterMarks) -> RebaseReason | None:
    """Why now is the time to fold what may be folded, or None."""
    if inputs.layout_changed:
        return "layout"
    if inputs.history_replaced:
        return "history"
    if inputs.model_changed:
        return "model"
    if inputs.cold:
        return "cold"
    if inputs.withdrawn:
        return "withdrawn"
    if inputs.window and inputs.tokens > marks.high * inputs.window:
        return "high-water"
    return None


def first_mutable(plan: Plan) -> int:
    """The first message from which on bytes may change at this call.

    Signed or encrypted reasoning of the turn under way may be bound to the bytes before it
    (`seals.py`). Then none of it may follow the first changed byte, unless the newest message
    is the user's, or a word of ours ends the turn (`Rebase` in `calls/deciding.py`).

    By Anthropic's documentation ("Thinking", "Preserved thinking") a tool loop is one turn of the
    assistant: in it reasoning has to come back as it was issued, and a user message that holds
    more than tool results ends it. Newer models also compare what precedes every block that
    comes back, in whichever turn; those may be left out, all from some message on, once the turn
    has ended (`folding.strip_reasoning`).
    """
    return _first_mutable(plan, plan.items)


def binds(plan: Plan, items: Sequence[Item]) -> bool:
    """Whether sealed reasoning of the turn under way is in a list that goes on from what the
    plan holds, so that not everything may be rewritten."""
    return _first_mutable(plan, items) > 0


def _first_mutable(plan: Plan, items: Sequence[Item]) -> int:
    ops = plan.ops
    if plan.turn_ends:
        return 0
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if item.kind == "user":
            return 0
        left_out = index < len(ops) and REASONING in ops[index].folded
        if plan.seals.binds(item) and not left_out:
            return index + 1
    return 0


def may_change(plan: Plan, indexes: Iterable[int]) -> set[int]:
    """Those of these messages whose own bytes may change at this call."""
    free = first_mutable(plan)
    return {index for index in indexes if index >= free and not is_immutable(plan, index)}


def is_immutable(plan: Plan, index: int) -> bool:
    """Whether a message holds sealed reasoning of the turn under way: that, and the calls that it
    led to, come back as they came, even where what precedes them may change."""
    item = plan.items[index]
    if plan.turn_ends or not item.signed or item.void or item.turn != plan.turn:
        return False
    return REASONING not in plan.ops[index].folded


def precedes_bound_turn(plan: Plan) -> bool:
    """Whether this call is the last for a while at which everything may change: the newest message
    is the user's, and the turn before it held bound reasoning, as the one that begins will."""
    items = plan.items
    if not items or items[-1].kind != "user":
        return False
    for item in reversed(items[:-1]):
        if plan.seals.binds(item):
            return True
        if item.kind == "user":
            return False
    return False


def is_cold(now_ms: int, last_ms: int | None, ttl_s: float) -> bool:
    """Whether a cache entry written at `last_ms` has expired; unknown counts as warm, and so does
    a clock that was set back: how much time has passed is unknown then."""
    return last_ms is not None and now_ms - last_ms > ttl_s * 1000

"""When to observe, when observations replace messages, and when to reflect.

Pure rules over counted tokens. Time counts only for the age of remarks. The rules are asked after
a call, or a message of the user's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from foredeck.model.observations import Mode
from foredeck.model.working import MemoryScope
from foredeck.observations.chunks import ChunkRules
from foredeck.observations.modes import MODES
from foredeck.store.clock import DAY_MS


@dataclass(frozen=True, slots=True)
class TimingRules:
    """Tokens, but for `activation` (a share of the threshold) and what is said below.

    threshold      of messages, at which what was noted of them takes their place; None: the mode's
    reflection     of the notes that replace chat, at which the oldest are condensed
    block_after    that wait beyond the last chunk: observing then goes before all else
    raw_count      remarks that stay as they are beside reflections, of the last `raw_ms`
    chunk          how long a chunk is
    scope          `resource`: nothing is observed before the threshold is reached
    """

    threshold: int | None = None
    reflection: int = 40_000
    activation: float = 0.8
    block_after: int = 7200
    raw_count: int = 50
    raw_ms: int = DAY_MS
    chunk: ChunkRules = field(default_factory=ChunkRules)
    scope: MemoryScope = "thread"


BEGIN_SHARE, LEAST_WINDOW = 0.65, 100_000
"""By themselves notes begin where the chat, all folded that can be, takes this share of a window of
at least so many tokens. Before, and in smaller windows, they cost more than they save: replays of
recorded sessions say so (`foredeck bench facts`, `python -m foredeck_bench.weigh`)."""


def begins(chat_tokens: int, window: int | None) -> bool:
    """Whether a chat of this size is noted down unasked. `window`: of the
    model, in tokens; None where it is not known."""
    return window is not None and window >= LEAST_WINDOW and chat_tokens >= BEGIN_SHARE * window


def threshold_of(rules: TimingRules, mode: Mode, observation_tokens: int) -> int:
    """How many tokens of messages the prompt may hold: the mode's threshold, less what
    observations take of it, and never less than a chunk."""
    wanted = MODES[mode].threshold if rules.threshold is None else rules.threshold
    return max(rules.chunk.least, wanted - observation_tokens)


def least_pending(rules: TimingRules, mode: Mode, observation_tokens: int) -> int:
    """How many unobserved tokens must wait before a chunk is observed."""
    if rules.scope == "thread":
        return rules.chunk.least
    return threshold_of(rules, mode, observation_tokens)


def is_activation_due(
    rules: TimingRules, mode: Mode, *, message_tokens: int, observation_tokens: int, fits: bool
) -> bool:
    """Whether what has been observed may replace its messages from now on.

    `message_tokens`: of the messages in the prompt, observed or not. `fits`: whether
    the prompt fits its window as it is.
    """
    threshold = threshold_of(rules, mode, observation_tokens)
    return not fits or message_tokens >= rules.activation * threshold


def is_pressing(rules: TimingRules, pending: int) -> bool:
    """Whether so many unobserved tokens wait that observing comes before all other work in the
    background."""
    return pending >= rules.chunk.least + rules.block_after


class Condensable(Protocol):
    """What can be condensed: an observation or a reflection."""

    @property
    def tokens(self) -> int:
        """Of its text."""
        ...

    @property
    def remark_times(self) -> Sequence[int]:
        """When its remarks were made, in milliseconds."""
        ...

    @property
    def is_condensed(self) -> bool:
        """Whether it is a reflection."""
        ...


MOST_CONDENSED = 12_000
"""Tokens that are condensed at once, unless one text has more: half of it is an answer that any
model can write."""

NOTES_SHARE = 0.2
"""Of a model's window, that notes take at most before they are condensed."""


def notes_limit(rules: TimingRules, window: int | None) -> int:
    """Tokens that may replace chat before the oldest of them are condensed."""
    return min(rules.reflection, int(NOTES_SHARE * window)) if window else rules.reflection


def kept_raw(rules: TimingRules, notes: Sequence[Condensable], limit: int, now_ms: int) -> int:
    """How many of the newest texts stay as they are when others are condensed."""
    # They hold the newest remarks of the last day, `raw_count` at most, and take half of the limit
    # at most. An observation is kept or condensed as a whole.
    kept = remarks = tokens = 0
    for one in reversed(notes):
        times = one.remark_times
        tokens += one.tokens
        is_old = max(times, default=0) < now_ms - rules.raw_ms
        if is_old or remarks >= rules.raw_count or tokens > limit // 2:
            break
        remarks += len(times)
        kept += 1
    return kept


def to_condense(
    rules: TimingRules,
    notes: Sequence[Condensable],
    now_ms: int,
    window: int | None = None,
    *,
    asked: bool = False,
) -> int:
    """How many of the oldest texts that replace chat are to be condensed now; 0 for none.

    `notes`: reflections and observations, oldest first. `window`: of the model, in tokens.
    `asked`: by the user, whatever their size.
    """
    limit = notes_limit(rules, window)
    if not asked and sum(one.tokens for one in notes) < limit:
        return 0
    older = notes[: len(notes) - kept_raw(rules, notes, limit, now_ms)]
    count = tokens = 0
    for one in older:
        tokens += one.tokens
        if count and tokens > MOST_CONDENSED:
            break
        count += 1
    # What has been condensed is condensed again together with what came after it.
    return 0 if count == 1 and older[0].is_condensed else count


def coverage(covered_tokens: int, left_tokens: int) -> float:
    """Of the tokens that have left the prompt, the share that was observed before; 1 where none has
    left."""
    return 1.0 if left_tokens <= 0 else min(1.0, covered_tokens / left_tokens)

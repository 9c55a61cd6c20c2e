"""When to observe, to let observations stand for messages, and to reflect.

Pure rules over counted tokens. Nothing here knows a clock but for the age of remarks, and nothing
begins by itself: whoever asks has just had a call, or a message of the user's.
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
    reflection     of observations, at which they are condensed
    summary        of reflections, at which these are condensed
    block_after    that wait beyond the last chunk: observing then goes before all else
    raw_count      remarks that stay as they are beside reflections, of the last `raw_ms`
    chunk          how long a chunk is
    scope          `resource`: nothing is observed before the threshold is reached
    """

    threshold: int | None = None
    reflection: int = 40_000
    summary: int = 80_000
    activation: float = 0.8
    block_after: int = 7200
    raw_count: int = 50
    raw_ms: int = DAY_MS
    chunk: ChunkRules = field(default_factory=ChunkRules)
    scope: MemoryScope = "thread"


def threshold_of(rules: TimingRules, mode: Mode, observation_tokens: int) -> int:
    """How many tokens of messages may stand in the prompt: the mode's threshold, less what
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
    """Whether what has been observed may stand for its messages from now on.

    `message_tokens`: of the messages that stand in the prompt, observed or not. `fits`: whether
    the prompt fits its window as it is.
    """
    threshold = threshold_of(rules, mode, observation_tokens)
    return not fits or message_tokens >= rules.activation * threshold


def is_pressing(rules: TimingRules, pending: int) -> bool:
    """Whether so many unobserved tokens wait that observing goes before all else that is done in
    the background."""
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


MOST_CONDENSED = 12_000
"""Tokens that are condensed at once, unless one text has more: half of it is an answer that any
model can write."""


def kept_raw(rules: TimingRules, observations: Sequence[Condensable], now_ms: int) -> int:
    """How many of the newest observations stay as they are when the others are condensed.

    Those that hold the newest remarks of the last day, up to their number, and as many as take
    half of the threshold of reflection. Whole ones: half an observation stands for nothing.
    """
    kept = remarks = tokens = 0
    for observation in reversed(observations):
        times = observation.remark_times
        tokens += observation.tokens
        is_old = max(times, default=0) < now_ms - rules.raw_ms
        if is_old or remarks >= rules.raw_count or tokens > rules.reflection // 2:
            break
        remarks += len(times)
        kept += 1
    return kept


def to_reflect(
    rules: TimingRules, observations: Sequence[Condensable], now_ms: int, *, asked: bool = False
) -> int:
    """How many of the oldest observations are to be condensed now; 0 for none.

    `asked`: by the user, whatever their size.
    """
    total = sum(observation.tokens for observation in observations)
    if not asked and total < rules.reflection:
        return 0
    return _at_once(observations[: len(observations) - kept_raw(rules, observations, now_ms)])


def to_summarise(rules: TimingRules, reflections: Sequence[Condensable]) -> int:
    """How many reflections are to be condensed into one summary now; 0 for none."""
    total = sum(reflection.tokens for reflection in reflections)
    if total < rules.summary or len(reflections) < 2:
        return 0
    return max(2, _at_once(reflections))


def _at_once(noted: Sequence[Condensable]) -> int:
    """How many of the oldest are condensed together."""
    tokens = 0
    for number, one in enumerate(noted):
        tokens += one.tokens
        if number and tokens > MOST_CONDENSED:
            return number
    return len(noted)


def coverage(covered_tokens: int, left_tokens: int) -> float:
    """The share of the tokens that left the prompt which had been observed before: 1 where none
    has left."""
    return 1.0 if left_tokens <= 0 else min(1.0, covered_tokens / left_tokens)

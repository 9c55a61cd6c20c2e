"""What Pi does in a replay: its own prompts, the tokens counted for them, and its cache warmer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from foredeck.accounting.cache import Shapes
from foredeck.context.messages.shape import Message
from foredeck.context.provider_cache import MINIMUM_TOKENS
from foredeck.context.state.gauge import PLAUSIBLE
from foredeck.model.call_values import CHARS_PER_TOKEN, PromptTokens
from foredeck.model.calls import CallRecord
from foredeck.prices import Cost, dollars
from foredeck_agents.histories.records import Compaction, RecordedCall, Transcript

ASSUMED_REASONING = 120.0
"""Mean tokens of reasoning, for answers recorded without any."""

MIN_POINTS = 5
"""Fewer counted calls give no rate."""

_INPUT = ("input", "cacheRead", "cacheWrite")


@dataclass(frozen=True, slots=True)
class Calibration:
    """A rate, and `head_tokens`, which precede the messages."""

    chars_per_token: float = CHARS_PER_TOKEN
    head_tokens: float = 0.0


def calibrate(transcript: Transcript) -> Calibration:
    """Fits reported input tokens against characters, by least squares, else their ratio."""
    shapes = Shapes()
    points = [
        (float(sum(shape.chars for shape in shapes.of(prompt))), tokens)
        for call, prompt in zip(
            transcript.calls, plain_prompts(transcript, transcript.compactions), strict=True
        )
        if (tokens := _reported(transcript.answer_to(call))) > 0
    ]
    if len(points) < MIN_POINTS:
        return Calibration()
    return _fit(points)


def _fit(points: list[tuple[float, float]]) -> Calibration:
    mean_x = _mean(x for x, _ in points)
    mean_y = _mean(y for _, y in points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if not mean_x or not spread:
        return Calibration()
    # The least-squares line.
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    head = mean_y - slope * mean_x
    if slope <= 0 or head < 0:
        # Prompts that hardly grow give no line: all of the tokens are taken to be messages'.
        slope, head = mean_y / mean_x, 0.0
    if not PLAUSIBLE[0] <= 1 / slope <= PLAUSIBLE[1]:
        return Calibration()
    return Calibration(1 / slope, head)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def _reported(message: Message) -> float:
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return 0.0
    return float(sum(v for name in _INPUT if isinstance(v := usage.get(name), int | float)))


def plain_prompts(transcript: Transcript, compactions: list[Compaction]) -> Iterator[list[Message]]:
    """What Pi alone would have sent, with these compactions."""
    own = compactions
    for call in transcript.calls:
        branch = transcript.along(call)
        compactions = branch.compactions if call.branch else own
        number = sum(1 for compaction in compactions if compaction.seen <= call.seen)
        first_kept = compactions[number - 1].kept_from if number else 0
        messages = [r.message for r in branch.edited(call.seen)[first_kept:] if r is not None]
        yield [*map(_summary, compactions[number - 1 : number] if number else ()), *messages]


def _summary(compaction: Compaction) -> Message:
    return {"role": "compactionSummary", "summary": compaction.summary}


# The cache warmer: it sends a prompt again before the provider's cache forgets it

# By pi-ai 1.6.0 `cache-warming.js`, and `core/cache-warmer.js` of its agent.
_IDLE_S, _RUNNING_S = 1800, 3600
"""How long it repeats: while the user is awaited, and while a tool runs."""
_RETURNS = 0.15
"""Probability that the user is back in time."""
_LEAST_SAVING = 0.05
"""Dollars a refresh must be expected to save."""


@dataclass(frozen=True, slots=True)
class Warmer:
    """A model's `cost` as in Pi's record, and its cache lifetime."""

    cost: Cost
    ttl_s: float

    def times(self, tokens: float, since_ms: int, until_ms: int, *, idle: bool) -> list[int]:
        """When a prompt is resent before the next; `idle`: the user is awaited."""
        hit, miss = self._dollars(tokens, "cacheRead"), self._dollars(tokens, "cacheWrite")
        saving = (_RETURNS if idle else 1.0) * max(0.0, miss - hit) - hit
        every_ms = int(1000 * min(0.9 * self.ttl_s, self.ttl_s - 10))
        if saving < _LEAST_SAVING or every_ms <= 0:
            return []
        last_ms = min(until_ms, since_ms + 1000 * (_IDLE_S if idle else _RUNNING_S))
        return list(range(since_ms + every_ms, last_ms + 1, every_ms))

    def bill(self, tokens: float) -> float:
        return 1e6 * self._dollars(tokens, "cacheRead") / float(self.cost["input"])

    def _dollars(self, tokens: float, kind: str) -> float:
        # The one token of the answer is left out.
        return dollars(self.cost, {kind: round(tokens)})


def awaits_user(transcript: Transcript, call: RecordedCall) -> bool:
    """Whether the user was awaited, not a tool."""
    messages = transcript.shown_to(call)
    return bool(messages) and messages[-1].message.get("role") == "user"


@dataclass(slots=True)
class WarmedSide:
    """Warming on one side of a replay."""

    refreshes: int = 0
    cost: float = 0.0
    """In tokens of uncached input."""
    tokens: float = 0.0
    """Of the newest prompt."""
    used_ms: int = 0
    """When it was sent last."""

    def wait(self, warmer: Warmer, until_ms: int, *, idle: bool) -> list[int]:
        times = warmer.times(self.tokens, self.used_ms, until_ms, idle=idle)
        self.refreshes += len(times)
        self.cost += len(times) * warmer.bill(self.tokens)
        self.used_ms = max((self.used_ms, *times))
        return times


class WarmedSides:
    """Both sides of a replay; `scale` converts the engine's tokens."""

    def __init__(self, warmer: Warmer, scale: float) -> None:
        self.plain, self.ours = WarmedSide(), WarmedSide()
        self._warmer, self._scale = warmer, scale

    def before(self, time_ms: int, *, idle: bool) -> int:
        """When foredeck's last prompt was last sent, in milliseconds since 1970; 0 before the
        first."""
        for side in (self.plain, self.ours):
            side.wait(self._warmer, time_ms, idle=idle)
        return self.ours.used_ms

    def after(self, record: CallRecord) -> None:
        """The engine takes plain Pi's cache for as warm as its own."""
        cache, plain = record.cache, record.cache.baseline or PromptTokens(0, 0, 0)
        warm, ours_warm = (self._is_warm(side, record) for side in (self.plain, self.ours))
        if warm != ours_warm:
            # A prompt that got shorter was compacted: nothing of it was sent before.
            saving = round(self.plain.tokens / self._scale) if warm else 0
            read = saving if MINIMUM_TOKENS <= saving <= sum(plain) else 0
            other = PromptTokens(read, sum(plain) - read, 0).cost(record.model)
            self.plain.cost += (other - plain.cost(record.model)) * self._scale
        ours = (cache.read or 0) + (cache.written or 0) + (cache.fresh or 0)
        for side, tokens in ((self.plain, sum(plain)), (self.ours, ours)):
            side.tokens, side.used_ms = tokens * self._scale, record.time_ms

    def _is_warm(self, side: WarmedSide, record: CallRecord) -> bool:
        return record.time_ms - side.used_ms <= self._warmer.ttl_s * 1000

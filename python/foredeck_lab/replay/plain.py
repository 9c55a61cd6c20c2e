"""Plain Pi in a replay: what it would have sent, and the tokens that its provider counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from foredeck.accounting.cache import Shapes
from foredeck.context.messages.shape import Message
from foredeck.model.call_values import CHARS_PER_TOKEN
from foredeck_agents.histories.records import Compaction, Transcript

ASSUMED_REASONING = 120.0
"""Mean tokens of reasoning, for answers recorded without any."""

MIN_POINTS = 5
"""Fewer counted calls give no rate."""

PLAUSIBLE = (1.0, 8.0)
"""Possible characters per token."""

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

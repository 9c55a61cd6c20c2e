"""What the host alone would have sent, and how many tokens the recorded provider counted of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from foredeck.accounting.shapes import Shapes
from foredeck.context.messages.shape import Message
from foredeck.histories.transcripts import Compaction, Transcript
from foredeck.model.call_values import CHARS_PER_TOKEN

MIN_POINTS = 5
"""Fewer calls with usage say nothing of a rate."""

PLAUSIBLE = (1.0, 8.0)
"""Characters per token that a tokenizer can come to; other usage was not of these prompts."""

_INPUT = ("input", "cacheRead", "cacheWrite")


@dataclass(frozen=True, slots=True)
class Calibration:
    """`head_tokens`: of what comes before the messages (system prompt, tools)."""

    chars_per_token: float = CHARS_PER_TOKEN
    head_tokens: float = 0.0


def calibrate(transcript: Transcript) -> Calibration:
    """Fit reported input tokens against the characters of the prompts as the host sent them.

    A least-squares line; where that has no sensible slope or a negative head, the plain ratio.
    The default where the recording reports too little.
    """
    shapes = Shapes()
    points = [
        (float(sum(shape.chars for shape in shapes.of(prompt))), tokens)
        for call, prompt in zip(
            transcript.calls, plain_prompts(transcript, transcript.compactions), strict=True
        )
        if (tokens := _reported(transcript.messages[call.seen].message)) > 0
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
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    head = mean_y - slope * mean_x
    if slope <= 0 or head < 0:
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
    """What Pi alone would have sent at each call, given the compactions in their order."""
    messages = [recorded.message for recorded in transcript.messages]
    summaries = [_summary(compaction) for compaction in compactions]
    for call in transcript.calls:
        number = sum(1 for compaction in compactions if compaction.seen <= call.seen)
        if not number:
            yield messages[: call.seen]
            continue
        kept = compactions[number - 1].kept_from
        yield [summaries[number - 1], *messages[kept : call.seen]]


def _summary(compaction: Compaction) -> Message:
    return {"role": "compactionSummary", "summary": compaction.summary}

"""How many tokens a prompt has: characters per token, as the provider's own counts tell them.

A provider reports the input tokens of every prompt. Their ratio to the characters that were sent,
the median over the newest calls of a model, is kept in the store for all sessions. Until there are
`MIN_CALLS` reports the default holds, and says that it is an estimate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from foredeck.context.messages.images import image_tokens
from foredeck.context.messages.items import IMAGE_CHARS
from foredeck.context.plan.plan import Plan
from foredeck.context.state.objects import Workspace
from foredeck.model.call_values import CHARS_PER_TOKEN, CallStats
from foredeck.model.records import CalibrationDocument, calibration_id

# Fewer reports say nothing: one prompt may be all digits, or all prose.
MIN_CALLS = 3

MAX_CALLS = 25
"""Reports that count, newest first."""

# A smaller prompt is mostly frame: role names, tool definitions as the provider writes them.
MIN_TOKENS = 500

# No tokenizer comes to other rates: a report with one was not of this prompt.
PLAUSIBLE = (1.0, 8.0)

# A rate that has moved by less than this share is not stored again: most calls would store one.
DRIFT = 0.02

Point = tuple[float, float]
"""Characters sent, without images, and the tokens that were reported for them."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """Characters to tokens, for one model."""

    # It decides only when the high-water mark is reached. That decision is recorded with the call,
    # and nothing that was rendered is ever computed again from a newer rate.

    rate: float = CHARS_PER_TOKEN
    """Characters per token."""
    calls: int = 0
    """How many reports it rests on; 0: it is an estimate."""
    api: str = ""
    """The wire, by which images are counted."""

    def tokens(self, chars: float) -> int:
        """Tokens of this many characters."""
        return int(chars / self.rate)

    def prompt(self, plan: Plan, fixed_chars: int) -> int:
        """Tokens of the prompt as it goes out; `fixed_chars` are around the messages."""
        images, tokens = self.images(plan)
        chars = plan.chars_sent + fixed_chars - images * IMAGE_CHARS
        return self.tokens(chars) + tokens

    def images(self, plan: Plan) -> tuple[int, int]:
        """How many images the prompt holds, and their tokens."""
        found = [image_tokens(block, self.api) for block in plan.images()]
        return len(found), sum(found)


def tokens_of(stats: CallStats, chars: int) -> int:
    """Tokens behind one of the counts of characters in `stats`."""
    return int((chars - stats.images * IMAGE_CHARS) / stats.rate) + stats.image_tokens


def rate_of(points: Iterable[Point]) -> float | None:
    """The median rate, None where too few points tell one."""
    rates = [chars / tokens for chars, tokens in points]
    return round(median(rates), 3) if len(rates) >= MIN_CALLS else None


def is_plausible(chars: float, tokens: float) -> bool:
    """Whether a report can be of a prompt of that length, and says something about the rate."""
    return tokens >= MIN_TOKENS and PLAUSIBLE[0] <= chars / tokens <= PLAUSIBLE[1]


@dataclass(slots=True)
class _Known:
    points: list[Point] = field(default_factory=list)
    stored: float | None = None
    """The rate that the store has."""


class Calibrator:
    """The gauges of all models, read from the store when first asked for."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._models: dict[str, _Known] = {}

    def gauge(self, model: str, api: str) -> Gauge:
        """The gauge in force for a model (`provider/id`)."""
        points = self._known(model).points
        rate = rate_of(points)
        return Gauge(api=api) if rate is None else Gauge(rate, len(points), api)

    def learn(self, model: str, chars: float, tokens: float) -> None:
        """Take in what was reported for a prompt of that length, images left out of both.

        A rate that is new, or has moved, goes into the transaction of the next call.
        """
        if not model or not is_plausible(chars, tokens):
            return
        known = self._known(model)
        known.points = [*known.points, (float(chars), float(tokens))][-MAX_CALLS:]
        rate = rate_of(known.points)
        if rate is None or (known.stored and abs(rate / known.stored - 1) < DRIFT):
            return
        known.stored = rate
        points = [list(point) for point in known.points]
        id = calibration_id(model)
        document = CalibrationDocument(id=id, model=model, chars_per_token=rate, points=points)
        self._workspace.put(document.seal())

    def _known(self, model: str) -> _Known:
        known = self._models.get(model)
        if known is None:
            head = self._workspace.head(calibration_id(model)) if model else None
            points = [] if head is None else [(c, t) for c, t in head.fields.get("points") or ()]
            known = self._models[model] = _Known(points, rate_of(points))
        return known

"""Tokens of text, by the median ratio of a model's newest reports, and of images, by their size.

The ratio is stored for all sessions; below `MIN_CALLS` reports a default holds.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from foredeck.context.messages.items import IMAGE_BEGINS, IMAGE_CHARS
from foredeck.context.plan.plan import Plan
from foredeck.context.state.objects import Workspace
from foredeck.model.call_values import CHARS_PER_TOKEN, CallStats
from foredeck.model.calls import CallRecord
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
"""Characters sent, without images, and reported tokens."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """Converts characters to tokens for one model."""

    # It decides only when the high-water mark is reached. That decision is recorded with the call,
    # and nothing that was rendered is ever computed again from a newer rate.

    rate: float = CHARS_PER_TOKEN
    """Characters per token."""
    calls: int = 0
    """Reports behind the rate; 0: an estimate."""
    api: str = ""
    """The wire, by which images are counted."""

    def tokens(self, chars: float) -> int:
        return int(chars / self.rate)

    def prompt(self, plan: Plan, fixed_chars: int) -> int:
        """Tokens of the prompt as it goes out; `fixed_chars` are around the messages."""
        images, tokens = self.images(plan)
        chars = plan.chars_sent + fixed_chars - images * IMAGE_CHARS
        return self.tokens(chars) + tokens

    def images(self, plan: Plan) -> tuple[int, int]:
        tokens = [image_tokens(block, self.api) for block in plan.images()]
        return len(tokens), sum(tokens)


def tokens_of(stats: CallStats, chars: int) -> int:
    return int((chars - stats.images * IMAGE_CHARS) / stats.rate) + stats.image_tokens


def counted_chars(stats: CallStats) -> int:
    return stats.chars_sent - stats.withheld - stats.images * IMAGE_CHARS


def sent_tokens(record: CallRecord) -> int:
    """Tokens of a call's prompt."""
    return tokens_of(record.stats, record.stats.chars_sent)


def plain_tokens(record: CallRecord) -> int:
    """Tokens of the host alone, compacted to its window."""
    stats, plain = record.stats, record.cache.baseline
    return tokens_of(stats, stats.chars_host) if plain is None else sum(plain)


def weighed(record: CallRecord) -> dict[str, float]:
    """A rebase's figures in tokens, with what it saved (`saves`), and the `factor` that decided."""
    decision, rate = record.decision, record.stats.rate or CHARS_PER_TOKEN
    figures: dict[str, float] = {
        name: round(value * CHARS_PER_TOKEN / rate) for name, value in decision.weighed.items()
    }
    if decision.is_rebase:
        figures["saves"] = int(record.stats.shorter_by / rate)
    if decision.factor is not None:
        figures["factor"] = decision.factor
    return figures


def rate_of(points: Iterable[Point]) -> float | None:
    """The median rate; None with too few points."""
    rates = [chars / tokens for chars, tokens in points]
    return round(median(rates), 3) if len(rates) >= MIN_CALLS else None


def is_plausible(chars: float, tokens: float) -> bool:
    """Whether a report fits the prompt's length, and is long enough to tell a rate."""
    return tokens >= MIN_TOKENS and PLAUSIBLE[0] <= chars / tokens <= PLAUSIBLE[1]


@dataclass(slots=True)
class _Known:
    points: list[Point] = field(default_factory=list)
    stored: float | None = None
    """The stored rate."""


class Calibrator:
    """Gauges of all models, read on first use."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._models: dict[str, _Known] = {}

    def gauge(self, model: str, api: str) -> Gauge:
        """The gauge of a model (`provider/id`)."""
        points = self._known(model).points
        rate = rate_of(points)
        return Gauge(api=api) if rate is None else Gauge(rate, len(points), api)

    def learn(self, model: str, chars: float, tokens: float) -> None:
        """Both figures without images; a new rate joins the next transaction."""
        if not model or not is_plausible(chars, tokens):
            return
        rates = self._known(model)
        rates.points = [*rates.points, (float(chars), float(tokens))][-MAX_CALLS:]
        rate = rate_of(rates.points)
        if rate is None or (rates.stored and abs(rate / rates.stored - 1) < DRIFT):
            return
        rates.stored = rate
        points = [list(point) for point in rates.points]
        id = calibration_id(model)
        document = CalibrationDocument(id=id, model=model, chars_per_token=rate, points=points)
        self._workspace.put(document.seal())

    def _known(self, model: str) -> _Known:
        rates = self._models.get(model)
        if rates is None:
            head = self._workspace.head(calibration_id(model)) if model else None
            points = [] if head is None else [(c, t) for c, t in head.fields.get("points") or ()]
            rates = self._models[model] = _Known(points, rate_of(points))
        return rates


# Images

UNKNOWN_TOKENS = 1200
"""For an unknown size or provider."""

HEADER_CHARS = (64, 4096, 4 * 65_536)
"""Read step by step: a JPEG has its size after metadata."""


class Pixels(NamedTuple):
    width: int
    height: int


def image_tokens(block: Mapping[str, Any], api: str) -> int:
    """Tokens of an image block on a wire."""
    size = pixels_of(str(block.get("data") or ""))
    if size is None or not size.width or not size.height:
        return UNKNOWN_TOKENS
    if api.startswith(("anthropic", "bedrock")):
        return _anthropic(size)
    if api.startswith(("openai", "azure")):
        return _openai(size)
    if api.startswith("google"):
        return _google(size)
    return UNKNOWN_TOKENS


def _anthropic(size: Pixels) -> int:
    scale = min(1.0, 1568 / max(size))
    return max(1, min(1600, math.ceil(size.width * scale * size.height * scale / 750)))


def _openai(size: Pixels) -> int:
    scale = min(1.0, 2048 / max(size))
    scale = min(scale, 768 / min(size))
    tiles = math.ceil(size.width * scale / 512) * math.ceil(size.height * scale / 512)
    return 85 + 170 * tiles


def _google(size: Pixels) -> int:
    if max(size) <= 384:
        return 258
    return 258 * math.ceil(size.width / 768) * math.ceil(size.height / 768)


def pixels_of(data: str) -> Pixels | None:
    """Size of a base64 PNG, JPEG, GIF or WebP file; None for anything else."""
    for length in HEADER_CHARS:
        head = data[:length]
        try:
            return _size(base64.b64decode(head[: len(head) - len(head) % 4]))
        except (binascii.Error, struct.error, ValueError, IndexError):
            if len(data) <= length:
                break
    return None


def _size(raw: bytes) -> Pixels | None:
    if raw.startswith(IMAGE_BEGINS["png"]):
        return Pixels(*struct.unpack(">II", raw[16:24]))
    if raw.startswith((b"GIF87a", b"GIF89a")):
        return Pixels(*struct.unpack("<HH", raw[6:10]))
    if raw.startswith(b"RIFF") and raw[8:12] == b"WEBP":
        return _webp(raw)
    return _jpeg(raw) if raw.startswith(IMAGE_BEGINS["jpeg"]) else None


def _webp(raw: bytes) -> Pixels | None:
    match raw[12:16]:
        case b"VP8 ":
            width, height = struct.unpack("<HH", raw[26:30])
            return Pixels(width & 0x3FFF, height & 0x3FFF)
        case b"VP8L":
            bits = struct.unpack("<I", raw[21:25])[0]
            return Pixels((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8X":
            width, height = (int.from_bytes(raw[at : at + 3], "little") for at in (24, 27))
            return Pixels(width + 1, height + 1)
    return None


def _jpeg(raw: bytes) -> Pixels | None:
    """The size is in the first start-of-frame segment."""
    at = 2
    while raw[at] == 0xFF:
        marker, length = raw[at + 1], struct.unpack(">H", raw[at + 2 : at + 4])[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", raw[at + 5 : at + 9])
            return Pixels(width, height)
        at += 2 + length
    return None

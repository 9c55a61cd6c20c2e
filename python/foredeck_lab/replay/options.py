"""How to replay: configuration, prices, and calibration."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from foredeck.accounting.cache import Shapes
from foredeck.config import Config
from foredeck.config.load import load_config
from foredeck.context.messages.shape import Message
from foredeck.context.rebase import prices_of
from foredeck.errors import ConfigError
from foredeck.model.call_values import CHARS_PER_TOKEN, DEFAULT_TTL_S
from foredeck.model.own_tools import DEFAULT_FACILITIES, FACILITY_TOOLS, Facility
from foredeck.prices import Cost, prices
from foredeck.regular_files import read_regular
from foredeck_agents.histories.records import Compaction, Transcript
from foredeck_lab.replay.as_model import ReplayedModel
from foredeck_lab.replay.warming import Warmer


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How to replay recorded sessions."""

    store: Literal["sqlite", "xtdb"] = "sqlite"
    layout: str = "anchored"
    policy: str = "adaptive"
    restart_every: int | None = None
    """Calls after which the engine is replaced."""
    prompts: Path | None = None
    """For prompts that would have been sent."""
    window: int | None = 200_000
    """Of the recorded models, in tokens."""
    settings: tuple[str, ...] = ()
    """`KEY=VALUE`; no file or variable is read, so that figures compare."""

    tools: tuple[Facility, ...] = DEFAULT_FACILITIES

    observes: bool = False
    """Whether chat is observed from the first threshold on; a model's price is counted."""

    ttl_s: float = DEFAULT_TTL_S
    """The provider's cache lifetime."""
    cache: str = "ideal"
    """The cache that the engine plans for."""
    prices: str | None = None
    """A model on the price list, or a file; None: by `as_model`, else by call."""
    as_model: ReplayedModel | None = None
    """The model of all answers."""
    warm: bool = False
    """Whether Pi's warmer keeps the cache of `as_model`."""

    def cost(self) -> Cost | None:
        """The model record's `cost`; None if each call has its own model's. Raises
        `ConfigError`."""
        if self.prices is not None:
            return load_cost(self.prices)
        return None if self.as_model is None else self.as_model.cost

    def warmer(self) -> Warmer | None:
        """What keeps the cache warm, if anything. Raises `ConfigError`."""
        cost = self.cost()
        if self.warm and self.as_model is None:
            raise ConfigError("--warm needs --as MODEL: it is that model's cache that is warmed.")
        if not self.warm or self.as_model is None or not self.as_model.warmed or cost is None:
            return None
        return Warmer(cost, self.ttl_s)

    def config(self, home: Path) -> Config:
        rules = {"anthropic": "markers", "breakpoints": "breakpoints"}
        cache = rules.get(self.cache, "prefix")
        own = (f"layout={self.layout}", f"policy={self.policy}", f"rebase.cache={cache}")
        flags = (*own, *self._tools(), *self.settings, f"home={home}")
        return load_config(
            flags=flags, environ={}, user_file=Path(os.devnull), constants=True
        ).config

    def _tools(self) -> Iterable[str]:
        for facility in FACILITY_TOOLS:
            yield f"tools.{facility}={'on' if facility in self.tools else 'off'}"


# Prices


def load_cost(name: str) -> Cost:
    """The `cost` of a model on the price list, or of a JSON file. Raises `ConfigError`."""
    try:
        value = json.loads(read_regular(name))
    except FileNotFoundError as error:
        if (listed := prices(name)) is not None:
            return listed
        raise ConfigError(f"{name} is neither a file nor a model with a known price.") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name} cannot be read as JSON: {error}") from error
    cost = value.get("cost", value) if isinstance(value, dict) else None
    if not isinstance(cost, dict) or not _finite(cost) or not prices_of(cost).known:
        raise ConfigError(
            f"{name} has no prices: expected an object with input, cacheRead and cacheWrite, "
            "such as `cost` of a model in Pi's models.json."
        )
    return cost


def _finite(cost: dict[str, Any]) -> bool:
    return all(math.isfinite(v) for v in cost.values() if isinstance(v, int | float))


# Plain Pi's side: what the host alone would have sent, and the tokens that its provider counted


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

"""How to replay: what the engine is configured with, by which prices it plans, and how many tokens
the recorded prompts had."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from foredeck.accounting.shapes import Shapes
from foredeck.config import Config
from foredeck.config.load import load_config
from foredeck.context.messages.shape import Message
from foredeck.context.rebase import DEFAULT_TTL_S, Prices, prices_of
from foredeck.errors import ConfigError
from foredeck.histories.records import Compaction, Transcript
from foredeck.model.call_values import CHARS_PER_TOKEN
from foredeck.model.own_tools import DEFAULT_FACILITIES, FACILITY_TOOLS, Facility
from foredeck.regular_files import read_regular
from foredeck.replay.as_model import ReplayedModel


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How to replay recorded sessions."""

    store: Literal["sqlite", "xtdb"] = "sqlite"
    layout: str = "anchored"
    policy: str = "adaptive"
    restart_every: int | None = None
    """Replace the engine after every this many calls."""
    prompts: Path | None = None
    """Folder for the prompts that would have been sent."""
    window: int | None = 200_000
    """Context window of the recorded models, in tokens."""
    settings: tuple[str, ...] = ()
    """More configuration, as `KEY=VALUE`. No file and no variable of the environment is read, so
    that figures compare."""

    tools: tuple[Facility, ...] = DEFAULT_FACILITIES
    """The facilities whose tools are declared, and paid for with every prompt."""

    observes: bool = False
    """Whether the chat is observed from the first threshold on; else where it would be by itself,
    unless `observations` is off. An observer that needs no model makes the notes, and what asking
    one for them would cost is counted."""

    ttl_s: float = DEFAULT_TTL_S
    """Seconds after which the provider's cache is taken to have expired."""
    cache: str = "ideal"
    """The provider's cache that the engine plans for."""
    prices: str | None = None
    """A profile of prices, or a file of them; None: those of `as_model`, else Anthropic's."""
    as_model: ReplayedModel | None = None
    """The model that is taken to have given all answers."""

    def read_cost(self) -> dict[str, float]:
        """`cost` of the model record that the engine is given. Raises `ConfigError`."""
        if self.prices is None and self.as_model is not None:
            return self.as_model.cost
        return load_cost(self.prices or "anthropic")

    def config(self, home: Path) -> Config:
        """The configuration of an engine on the store in `home`. Raises `ConfigError`."""
        cache = "markers" if self.cache == "anthropic" else "prefix"
        own = (f"layout={self.layout}", f"policy={self.policy}", f"rebase.cache={cache}")
        flags = (*own, *self._tools(), *self.settings, f"home={home}")
        return load_config(
            flags=flags, environ={}, user_file=Path(os.devnull), constants=True
        ).config

    def _tools(self) -> Iterable[str]:
        for facility in FACILITY_TOOLS:
            yield f"tools.{facility}={'on' if facility in self.tools else 'off'}"


# Prices


PROFILES: dict[str, dict[str, float]] = {
    "anthropic": {"input": 1.0, "cacheRead": 0.1, "cacheWrite": 1.25},
    "openai": {"input": 1.0, "cacheRead": 0.1, "cacheWrite": 1.0},
    "no-cache": {"input": 1.0, "cacheRead": 1.0, "cacheWrite": 1.0},
}
"""`cost` of a model record, by the name of the profile. Without a cache every token of every
prompt is paid in full."""


LIST_PRICES: dict[str, float] = {
    "claude-3-5-haiku": 0.8,
    "claude-3-haiku": 0.25,
    "claude-3-opus": 15.0,
    "claude-3": 3.0,
    "claude-fable-5": 10.0,
    "claude-fable-5-2": 8.0,
    "claude-haiku-4": 1.0,
    "claude-haiku-5-5": 0.1,
    "claude-opus-4": 5.0,
    "claude-opus-4-0": 15.0,
    "claude-opus-4-1": 15.0,
    "claude-opus-4-2": 15.0,
    "claude-opus-5": 5.0,
    "claude-opus-5-5": 4.0,
    "claude-sonnet-4": 3.0,
    "claude-sonnet-5": 2.0,
    "gemini-2.5-flash": 0.3,
    "gemini-2.5-pro": 1.25,
    "gemini-3-flash": 0.5,
    "gemini-3.1-pro": 2.0,
    "gemini-3.5-flash": 1.5,
    "gemini-3.6-flash": 0.75,
    "gemini-3.7-flash": 0.75,
    "gemini-3.8-flash": 0.75,
    "gemini-4": 2.0,
    "gemini-4-hydrogen": 1.5,
    "gemini-4-neon": 3.0,
    "gpt-5": 1.25,
    "gpt-5-mini": 0.25,
    "gpt-5.2": 1.75,
    "gpt-5.3": 1.75,
    "gpt-5.4": 2.5,
    "gpt-5.4-mini": 0.75,
    "gpt-5.5": 5.0,
    "gpt-5.6": 4.0,
    "gpt-5.6-luna": 0.2,
    "gpt-5.6-terra": 2.0,
    "gpt-6": 2.0,
    "gpt-6-astra": 10.0,
    "gpt-6-luna": 0.1,
    "gpt-6.1-terra": 1.0,
    "gpt-6.2-astra": 8.0,
}
"""Dollars for a million tokens of uncached input, by how a model's name begins, as in the list of
models of Pi 1.6.0: for histories, which name no prices."""


def list_price(model: str) -> float:
    """The price of a model (`provider/id`, or the id alone); 0 where the list has none."""
    id = model.rsplit("/", 1)[-1]
    known = [name for name in LIST_PRICES if id.startswith(name)]
    return LIST_PRICES[max(known, key=len)] if known else 0.0


def load_cost(name: str) -> dict[str, float]:
    """The `cost` record of a profile, or of a JSON file: itself one, or a model record with one.

    Raises `ConfigError`.
    """
    if name in PROFILES:
        return PROFILES[name]
    try:
        value = json.loads(read_regular(name))
    except FileNotFoundError as error:
        known = ", ".join(PROFILES)
        raise ConfigError(
            f"{name} is neither a file nor a known set of prices ({known})."
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name} cannot be read as JSON: {error}") from error
    cost = value.get("cost", value) if isinstance(value, dict) else None
    if not isinstance(cost, dict) or not _finite(cost) or not prices_of(cost).known:
        raise ConfigError(
            f"{name} has no prices: expected an object with input, cacheRead and cacheWrite, "
            "such as `cost` of a model in Pi's models.json."
        )
    return {k: float(v) for k, v in cost.items() if isinstance(v, int | float)}


def _finite(cost: dict[str, Any]) -> bool:
    return all(math.isfinite(v) for v in cost.values() if isinstance(v, int | float))


def load_prices(name: str) -> Prices:
    """The prices of a profile or file, relative to input. Raises `ConfigError`."""
    return prices_of(load_cost(name))


# Plain Pi's side: what the host alone would have sent, and the tokens that its provider counted


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
    """What Pi alone would have sent at each call, given the compactions in their order."""
    own = compactions
    for call in transcript.calls:
        branch = transcript.along(call)
        compactions = branch.compactions if call.branch else own
        number = sum(1 for compaction in compactions if compaction.seen <= call.seen)
        kept = compactions[number - 1].kept_from if number else 0
        shown = [r.message for r in branch.edited(call.seen)[kept:] if r is not None]
        yield [*map(_summary, compactions[number - 1 : number] if number else ()), *shown]


def _summary(compaction: Compaction) -> Message:
    return {"role": "compactionSummary", "summary": compaction.summary}

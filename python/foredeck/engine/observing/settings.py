"""The parts of the configuration that observing needs."""

from __future__ import annotations

from dataclasses import dataclass

from foredeck.config import Config
from foredeck.model.observations import Mode, ModeBy
from foredeck.observations.chunks import ChunkRules
from foredeck.observations.timing import TimingRules
from foredeck.store.clock import HOUR_MS


@dataclass(frozen=True, slots=True)
class ObservingSettings:
    """`always`: not only where it pays (`observations = "on"`). `mode`: None where it is guessed,
    `mode_by`: who else said it."""

    always: bool
    rules: TimingRules
    mode: Mode | None
    mode_by: ModeBy


def observing_settings(config: Config, *, is_subagent: bool) -> ObservingSettings | None:
    """How a session is observed; None where it is not."""
    section = config.observing
    if config.observations == "off" or (is_subagent and not section.subagents):
        return None
    rules = TimingRules(
        threshold=section.threshold,
        reflection=section.reflection_tokens,
        activation=section.activation,
        block_after=section.block_after,
        raw_count=section.raw_count,
        raw_ms=section.raw_hours * HOUR_MS,
        chunk=ChunkRules(least=section.buffer_tokens),
        scope=section.scope,
    )
    by: ModeBy = "start" if is_subagent else "user"
    return ObservingSettings(config.observations == "on", rules, section.mode, by)

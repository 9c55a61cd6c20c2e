"""How to replay: what the engine is configured with."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from foredeck.config import Config, load_config
from foredeck.context.cache.rebase import DEFAULT_TTL_S
from foredeck.errors import ConfigError
from foredeck.model.own_tools import DEFAULT_FACILITIES, FACILITY_TOOLS, Facility


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
    prices: str = "anthropic"
    """A profile of prices, or a file of them."""

    def config(self, home: Path) -> Config:
        """The configuration of an engine on the store in `home`. Raises `ConfigError`, for a key of
        an earlier version too: figures would not show that it changes nothing."""
        cache = "markers" if self.cache == "anthropic" else "prefix"
        own = (f"layout={self.layout}", f"policy={self.policy}", f"rebase.cache={cache}")
        flags = (*own, *self._tools(), *self.settings, f"home={home}")
        resolved = load_config(flags=flags, environ={}, user_file=Path(os.devnull))
        if resolved.retired:
            raise ConfigError(resolved.retired_notice)
        return resolved.config

    def _tools(self) -> Iterable[str]:
        for facility in FACILITY_TOOLS:
            yield f"tools.{facility}={'on' if facility in self.tools else 'off'}"

"""Layouts by name."""

from __future__ import annotations

from foredeck.context.rendering.anchored import Anchored
from foredeck.context.rendering.layout import Layout
from foredeck.context.rendering.pools import Pools
from foredeck.errors import ConfigError

LAYOUTS: dict[str, type[Layout]] = {Anchored.name: Anchored, Pools.name: Pools}


def make_layout(name: str) -> Layout:
    """The layout of that name. Raises `ConfigError` for a name that is not known."""
    if name not in LAYOUTS:
        raise ConfigError(f"No layout is called {name!r}. Known: {', '.join(sorted(LAYOUTS))}.")
    return LAYOUTS[name]()

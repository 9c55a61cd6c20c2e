"""foredeck: a context manager for coding agents, for Pi and for loops of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foredeck.version import __version__ as __version__

if TYPE_CHECKING:
    from foredeck.embedded.manager import AsyncContextManager as AsyncContextManager
    from foredeck.embedded.manager import ContextManager as ContextManager
    from foredeck.embedded.manager import ModelInfo as ModelInfo
    from foredeck.embedded.manager import manage as manage

_EMBEDDED = ("ContextManager", "ModelInfo", "AsyncContextManager", "manage")


def __getattr__(name: str) -> Any:
    """Names for agent loops, imported on demand: commands start without them."""
    if name not in _EMBEDDED:
        raise AttributeError(f"module 'foredeck' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("foredeck.embedded.manager"), name)

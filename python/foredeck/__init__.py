"""foredeck: a context manager for coding agents, for Pi and for loops of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foredeck.embedded.manager import AsyncContextManager as AsyncContextManager
    from foredeck.embedded.manager import ContextManager as ContextManager
    from foredeck.embedded.manager import ModelInfo as ModelInfo

__version__ = "0.1.0"

_EMBEDDED = {
    "ContextManager": "foredeck.embedded.manager",
    "ModelInfo": "foredeck.embedded.manager",
    "AsyncContextManager": "foredeck.embedded.manager",
}


def __getattr__(name: str) -> Any:
    """What a loop of one's own needs, imported when it is asked for: commands start without it."""
    if name not in _EMBEDDED:
        raise AttributeError(f"module 'foredeck' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_EMBEDDED[name]), name)

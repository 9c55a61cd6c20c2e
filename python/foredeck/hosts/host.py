"""What an engine asks of the host that it serves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from foredeck.hosts.asking import AskModels
from foredeck.store.protocol import Notify, silent

CallSoon = Callable[[Callable[[], None]], object]
"""Runs a function on the engine's thread, between two requests; may be called from any thread."""

Show = Callable[[str], None]
"""Shows the user what is done in the background; an empty text says that it has ended."""


@dataclass(frozen=True, slots=True)
class Host:
    """What a host offers. Without `call_soon` no files are watched; without `models` nothing is
    done in the background."""

    notify: Notify = silent
    call_soon: CallSoon | None = None
    models: AskModels | None = None
    show: Show = lambda _text: None


NO_HOST = Host()
"""Nothing is shown, watched or asked."""

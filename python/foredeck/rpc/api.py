"""What the connection asks of the engine behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from foredeck.config import Config

Params = dict[str, Any]
Notify = Callable[[str, str], None]
"""`notify(level, text)`: say something to the user; level is "info", "warning" or "error"."""


CallSoon = Callable[[Callable[[], None]], object]
"""Runs a function on the event loop, between two requests; may be called from any thread."""


class EngineApi(Protocol):
    """One engine, serving one host process.

    Every method is synchronous and called on the event loop, one at a time, in order of arrival,
    and either does all of its work or none. Params and results have the shapes of docs/protocol.md;
    the shape of params has been checked down to, not including, the host's messages. A
    `ForedeckError` becomes that error's code and text, any other exception an internal error.
    """

    def initialize(self, params: Params) -> Params:
        """Called once, first. The store may be opened later."""

    def open_session(self, params: Params) -> Params:
        """`session/open`: idempotent; closes the session that was open."""

    def assemble(self, params: Params) -> Params:
        """`context/assemble`: commits the call record, then gives the edits."""

    def compact(self, params: Params) -> Params:
        """`session/compact`: the host wants to put chat away."""

    def tool_call(self, params: Params) -> Params:
        """`tool/call`: a tool of ours; ToolError is written for the model."""

    def tool_started(self, params: Params) -> None:
        """`tool/started`: a tool that names a file is about to run."""

    def observe(self, params: Params) -> None:
        """`tool/observed`: a tool has run."""

    def command(self, params: Params) -> Params:
        """`command`: what the user typed after /foredeck."""

    def session_event(self, params: Params) -> None:
        """`session/event`: something that the next request will show anyway."""

    def close_session(self, params: Params) -> Params:
        """`session/close`."""

    def close(self) -> None:
        """Close the store. Called once, last, on every way out."""


class EngineFactory(Protocol):
    """Makes an engine: the `Engine` class itself."""

    def __call__(self, config: Config, *, notify: Notify, call_soon: CallSoon) -> EngineApi:
        """A new engine; raises ForedeckError if it cannot be."""

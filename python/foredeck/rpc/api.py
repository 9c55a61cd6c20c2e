"""What the connection asks of the engine behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from foredeck.config import Config
from foredeck.hosts.host import Host
from foredeck.hosts.protocol import (
    AssembleParams,
    AssembleResult,
    CommandParams,
    CommandResult,
    InitializeParams,
    InitializeResult,
    NoResult,
    RefusedParams,
    RefusedResult,
    SessionCloseParams,
    SessionCompactParams,
    SessionCompactResult,
    SessionEventParams,
    SessionHistoryParams,
    SessionHistoryResult,
    SessionOpenParams,
    SessionOpenResult,
    ToolCallParams,
    ToolCallResult,
    ToolObservedParams,
    ToolPrepareParams,
    ToolPrepareResult,
    ToolStartedParams,
)


class EngineApi(Protocol):
    """One engine, serving one host process.

    Every method is synchronous and called on the event loop, one at a time, in order of arrival,
    and either does all of its work or none. A `ForedeckError` becomes that error's code and text,
    any other exception an internal error.
    """

    def initialize(self, params: InitializeParams) -> InitializeResult:
        """Called once, first. The store is open by now: `warnings` tell what happened to it."""

    def open_session(self, params: SessionOpenParams) -> SessionOpenResult:
        """`session/open`: idempotent; closes the session that was open."""

    def take_history(self, params: SessionHistoryParams) -> SessionHistoryResult:
        """`session/history`: takes in what a session holds, ahead of its first call."""

    def assemble(self, params: AssembleParams) -> AssembleResult:
        """`context/assemble`: commits the call record, then gives the edits."""

    def refused(self, params: RefusedParams) -> RefusedResult:
        """`context/refused`: the provider has refused the newest prompt."""

    def compact(self, params: SessionCompactParams) -> SessionCompactResult:
        """`session/compact`: the host wants to replace messages by a summary."""

    def tool_call(self, params: ToolCallParams) -> ToolCallResult:
        """`tool/call`: a context tool; a `ToolError` is written for the model."""

    def prepare_tool(self, params: ToolPrepareParams) -> ToolPrepareResult:
        """`tool/prepare`: whether a tool that may write files is to run."""

    def tool_started(self, params: ToolStartedParams) -> None:
        """`tool/started`: a tool that names a file is about to run."""

    def tool_observed(self, params: ToolObservedParams) -> None:
        """`tool/observed`: a tool has run."""

    def command(self, params: CommandParams) -> CommandResult:
        """`command`: what the user typed after /foredeck."""

    def session_event(self, params: SessionEventParams) -> None:
        """`session/event`: something that the next request will show anyway."""

    def close_session(self, params: SessionCloseParams) -> NoResult:
        """`session/close`."""

    def close(self) -> None:
        """Close the store. Called once, last, on every way out."""


class EngineFactory(Protocol):
    """Makes an engine: the `Engine` class itself."""

    def __call__(self, config: Config, host: Host, *, warnings: Sequence[str]) -> EngineApi:
        """A new engine; raises ForedeckError if it cannot be. `warnings`: what the user reads
        once."""

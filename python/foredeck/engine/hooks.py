"""The hooks of an open session, beside those of its prompt (`context/state/facilities.py`).

A part that a session has beside its chat is on a hook if it has the methods of its protocol. One
that raises is logged, and the parts after it are asked all the same (`OpenedSession`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from foredeck.hosts.protocol import MemoryQuestion
from foredeck.model.own_tools import Facility

Notes = Mapping[str, bool]
"""What is kept of a project between its sessions, by name."""


@runtime_checkable
class FacilityTool(Protocol):
    @property
    def name(self) -> str:
        """The `name` in `ts-shim/tools.json`."""
        ...

    def run(self, input: Mapping[str, Any], call: str) -> str:
        """The result's text; `input` is unchecked.

        Raises `ToolError` that tells the model what to do instead.
        """
        ...


@runtime_checkable
class AskingTool(FacilityTool, Protocol):
    def questions(self) -> list[MemoryQuestion]:
        """What the host asks the user about the newest answer."""
        ...


@runtime_checkable
class SwitchedPart(Protocol):
    @property
    def facility(self) -> Facility:
        """A key of `[tools]`."""
        ...

    def has_use(self, notes: Notes) -> bool:
        """Whether the project's next session declares the tools, where that is `auto`."""
        ...


@runtime_checkable
class BeginningPart(Protocol):
    def begin(self) -> str:
        """Looks at what changed between sessions, as one opens; never raises.

        Returns a notice for the user, or nothing.
        """
        ...


@runtime_checkable
class AnswerReader(Protocol):
    def read_answer(self, text: str) -> None:
        """Takes note of an answer that ends a run; never raises."""
        ...


@runtime_checkable
class ResultReader(Protocol):
    def read_result(self, tool: str, call: str, details: Any, note: Callable[[str], None]) -> str:
        """Takes note of what a tool returned; never raises.

        Returns a notice for the user, or nothing. `note` keeps a fact of the project.
        """
        ...


@runtime_checkable
class SettlingPart(Protocol):
    def settle(self) -> Sequence[str]:
        """Goes on with what waited for the database, after each call; returns what became of it,
        for the user. Raises `StoreError`."""
        ...


@runtime_checkable
class WorkFollower(Protocol):
    def follow_work(self) -> None:
        """Takes in what the session has done, as it ends; only if a prompt was assembled."""
        ...


@runtime_checkable
class LeavingPart(Protocol):
    def leave(self) -> None:
        """Frees what other sessions wait for, as this one ends; never raises."""
        ...


@runtime_checkable
class StatusPart(Protocol):
    def status_line(self) -> str:
        """What stands above the editor; empty for nothing. Raises `ForedeckError`."""
        ...

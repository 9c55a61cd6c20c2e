"""The hooks of an open session, beside those of its prompt (`context/state/facilities.py`).

A part that a session has beside its chat is on a hook if it has the methods of its protocol.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

from foredeck.config import Config
from foredeck.context.state.facilities import ContextFacilities
from foredeck.context.state.session import Session, SessionFolder
from foredeck.derived.layer import TimeBudget
from foredeck.engine.background import BackgroundWorker
from foredeck.errors import ForedeckError, StoreError
from foredeck.hosts.protocol import MemoryQuestion
from foredeck.model.own_tools import Facility

log = logging.getLogger(__name__)

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
class RecordReader(Protocol):
    def described(self, name: str) -> str | None:
        """A record without a handle, as `activate` shows it; None if the name means none."""
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
        """What stands below the editor; empty for nothing. Raises `ForedeckError`."""
        ...


@dataclass(frozen=True)
class Facilities(ContextFacilities):
    @cached_property
    def tools(self) -> Mapping[str, FacilityTool]:
        """The model's other tools, by name."""
        return {part.name: part for part in self.parts if isinstance(part, FacilityTool)}

    @cached_property
    def workers(self) -> Sequence[BackgroundWorker]:
        return [part for part in self.parts if isinstance(part, BackgroundWorker)]

    def has_use(self, facility: Facility, notes: Notes) -> bool:
        switched = [part for part in self.parts if isinstance(part, SwitchedPart)]
        return any(part.facility == facility and part.has_use(notes) for part in switched)

    def described(self, name: str) -> str | None:
        readers = (part for part in self.parts if isinstance(part, RecordReader))
        return next(filter(None, (part.described(name) for part in readers)), None)

    def begin(self) -> list[str]:
        notices = [part.begin() for part in self.parts if isinstance(part, BeginningPart)]
        return [notice for notice in notices if notice]

    def read_answer(self, text: str) -> None:
        for part in self.parts:
            if isinstance(part, AnswerReader):
                part.read_answer(text)

    def read_result(
        self, tool: str, call: str, details: Any, note: Callable[[str], None]
    ) -> list[str]:
        readers = [part for part in self.parts if isinstance(part, ResultReader)]
        return [*filter(None, (part.read_result(tool, call, details, note) for part in readers))]

    def settle(self) -> Iterator[str]:
        for part in self.parts:
            if isinstance(part, SettlingPart):
                try:
                    yield from part.settle()
                except StoreError as error:
                    log.warning("%s is not settled yet: %s", type(part).__name__, error)

    def follow_work(self) -> None:
        for part in self.parts:
            if isinstance(part, WorkFollower):
                part.follow_work()

    def leave(self) -> None:
        for part in self.parts:
            if isinstance(part, LeavingPart):
                part.leave()

    def status_line(self) -> str:
        return " · ".join(filter(None, map(_status_of, self.parts)))


def _status_of(part: object) -> str:
    try:
        return part.status_line() if isinstance(part, StatusPart) else ""
    except ForedeckError as error:
        log.warning("the status of %s cannot be shown: %s", type(part).__name__, error)
        return ""


class FacilityInputs(NamedTuple):
    """What facilities are made from, as a session opens."""

    config: Config
    session: Session
    session_folder: SessionFolder
    layers_wait: TimeBudget
    """Time left for layers."""

    @classmethod
    def at_opening(
        cls, config: Config, session: Session, session_folder: SessionFolder
    ) -> FacilityInputs:
        return cls(config, session, session_folder, TimeBudget(config.opening_s))


MakeFacilities = Callable[[FacilityInputs], Facilities]

"""A session at work: state, facilities, assembler, watched files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from foredeck.config import Config
from foredeck.context.assembler import Assembler
from foredeck.context.head import FollowingSection
from foredeck.context.intake.file_changes import look_again
from foredeck.context.state.facilities import ContextFacilities
from foredeck.context.state.session import Session, SessionFolder
from foredeck.derived.layer import TimeBudget
from foredeck.engine.background import BackgroundWorker
from foredeck.engine.switches import Switches
from foredeck.engine.watching import NoWatch, SessionWatch, files_met
from foredeck.errors import ForedeckError, StoreError
from foredeck.hosts.protocol import (
    CommandResult,
    MemoryQuestion,
    RunningTool,
    SessionOpenResult,
    ToolCallResult,
)
from foredeck.sources.tool_calls import WRITERS
from foredeck.timeline.guard import ToolGuard
from foredeck.timeline.keeping import ChangeKeeper

log = logging.getLogger(__name__)

CLOSING_S = 0.5
"""Longest wait at a session's end for files of its last command, in seconds."""

Answer = TypeVar("Answer", SessionOpenResult, ToolCallResult, CommandResult)


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
class SettlingPart(Protocol):
    def settle(self) -> Sequence[str]:
        """Goes on with what waited for the database, after each call; returns what became of it,
        for the user. Raises `StoreError`."""
        ...


@runtime_checkable
class LeavingPart(Protocol):
    def leave(self) -> None:
        """Frees what other sessions wait for, as this one ends; never raises."""
        ...


@runtime_checkable
class StatusPart(Protocol):
    def status_line(self) -> str:
        """The line below the editor; empty for none. Raises `ForedeckError`."""
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


@dataclass(eq=False)
class OpenedSession:
    """The engine's work in its open session."""

    config: Config
    session: Session
    session_folder: SessionFolder
    layers_wait: TimeBudget
    """Seconds left to wait for layers."""
    facilities: Facilities
    watch: SessionWatch | NoWatch
    switches: Switches | None
    """What the project's next session declares; None in a replay."""
    guard: ToolGuard | None
    """None in a replay."""
    keeper: ChangeKeeper | None
    """Keeps what tools change; None where nothing is kept."""
    _assembler: Assembler | None = field(default=None, init=False)

    @property
    def assembler(self) -> Assembler:
        """The assembler, made on first use."""
        if self._assembler is None:
            self._assembler = Assembler(self.config, self.session, self.facilities)
        return self._assembler

    def reconcile(self, paths: Iterable[str] | None = None, patience_s: float = 0.0) -> None:
        files = files_met(self.session.objects) if paths is None else paths
        look_again(self.session.objects, self.session.inbox, files, patience_s)
        self.watch.follow()
        # What was still being written is read once more in a moment.
        self.watch.remind()

    def take_up(self, running: Iterable[RunningTool]) -> None:
        """Goes on with tools that an earlier engine saw begin; what they change is theirs."""
        self.watch.postpone(files_met(self.session.objects))
        for each in running:
            self.watch.hold_all(each.id)
            if self.guard is None or each.tool in WRITERS:
                continue
            self.guard.windows.begin_late(each.id)
            if self.keeper is not None:
                self.keeper.begin(each.id, each.tool, each.input, self.guard.windows.known)

    def prepare(self) -> None:
        self.assembler.prepare()
        self._follow_sections()

    def end_tools(self) -> None:
        """Ends all tools: a prompt is being assembled."""
        if self.guard is not None:
            self.guard.forget()
        if self.keeper is not None:
            self.keeper.forget()

    def close(self) -> None:
        if self.keeper is not None:
            self.keeper.settle(CLOSING_S)
        self._follow_layers()
        for part in self.facilities.parts:
            if isinstance(part, LeavingPart):
                part.leave()

    def _follow_layers(self) -> None:
        if self._assembler is None:
            return
        # Loads with the first session, as where it is opened.
        from foredeck.engine.worklog import FOLLOWING_S, follow_work

        self.layers_wait = TimeBudget(FOLLOWING_S)
        try:
            self._follow_sections()
            if self.session.info.is_live:
                follow_work(self.config, self.session.objects.store)
        except StoreError as error:
            log.warning("the layers are not up to date: %s", error)

    def _follow_sections(self) -> None:
        for section in self.facilities.sections:
            if isinstance(section, FollowingSection):
                section.follow(self.layers_wait)

    def settle(self) -> None:
        """Settles what waited for the database; the user hears at once."""
        for part in self.facilities.parts:
            if isinstance(part, SettlingPart):
                try:
                    for line in part.settle():
                        self.session.inbox.notify(line)
                except StoreError as error:
                    log.warning("%s is not settled yet: %s", type(part).__name__, error)

    def with_status(self, answer: Answer) -> Answer:
        """The answer with the line for the user."""
        if self.switches is None:
            return answer
        self.switches.refresh()
        for part in self.facilities.parts:
            try:
                if isinstance(part, StatusPart) and (line := part.status_line()):
                    answer["tasks"] = {"line": line}
            except ForedeckError as error:
                log.warning("the status of %s cannot be shown: %s", type(part).__name__, error)
        return answer

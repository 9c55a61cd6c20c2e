"""A session at work: its state, its facilities, the assembler of its calls, the watch of its
files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from foredeck.config import Config
from foredeck.context.assembler import Assembler
from foredeck.context.head import FollowingSection
from foredeck.context.intake.file_changes import look_again
from foredeck.context.state.features import ContextFacilities
from foredeck.context.state.opening import Session, SessionFolder
from foredeck.derived.layer import TimeBudget
from foredeck.engine.assembling import make_assembler
from foredeck.engine.background import BackgroundWorker
from foredeck.engine.switches import Switches
from foredeck.engine.watching import NoWatch, SessionWatch
from foredeck.errors import ForedeckError, StoreError
from foredeck.hosts.protocol import CommandResult, SessionOpenResult, ToolCallResult
from foredeck.timeline.guard import ToolGuard
from foredeck.timeline.keeping import ChangeKeeper

log = logging.getLogger(__name__)

CLOSING_S = 0.5
"""How long the end of a session waits for the files that its last command has left."""

Answer = TypeVar("Answer", SessionOpenResult, ToolCallResult, CommandResult)


class FacilityTool(Protocol):
    """One of the model's tools that are not the context tools."""

    @property
    def name(self) -> str:
        """The `name` in `ts-shim/tools.json`."""
        ...

    def run(self, input: Mapping[str, Any], call: str) -> str:
        """The text of the result. `input`: as the model wrote it, not checked against the
        definition. `call`: the host's id of the tool call.

        Raises `ToolError` with a text for the model that says what to do instead.
        """
        ...


@dataclass(frozen=True, slots=True)
class Facilities(ContextFacilities):
    """What one session has beside its chat."""

    tools: Mapping[str, FacilityTool] = field(default_factory=dict)
    """The model's other tools, by name."""
    workers: Sequence[BackgroundWorker] = ()
    """What works for it in the background."""


class FacilityInputs(NamedTuple):
    """A session that is being opened. Facilities are made from it; each takes what it needs."""

    config: Config
    session: Session
    session_folder: SessionFolder
    layers_wait: TimeBudget
    """What is left of the time that the opening waits for layers."""


MakeFacilities = Callable[[FacilityInputs], Facilities]


def configured_facilities(opening: FacilityInputs) -> Facilities:
    """Those that are switched on for a session."""
    # Their modules load with the first session: an engine that waits for one starts without them.
    from foredeck.engine.facilities import make_facilities

    return make_facilities(opening)


class OpenedSession:
    """What the engine does for the session that it has open; `requests.py` serves the host's
    requests in it."""

    def __init__(
        self,
        opening: FacilityInputs,
        facilities: Facilities,
        watch: SessionWatch | NoWatch,
        switches: Switches | None,
        guard: ToolGuard | None,
        keeper: ChangeKeeper | None,
    ) -> None:
        self.config = opening.config
        self.session = opening.session
        self.session_folder = opening.session_folder
        self.layers_wait = opening.layers_wait
        """What is left of the time that layers are waited for at the opening, or after a call."""
        self.facilities = facilities
        self.watch = watch
        self.switches = switches
        """What the project's next session declares; None in a replay, which has no next."""
        self.guard = guard
        """None in a replay."""
        self.keeper = keeper
        """Keeps what tools change; None where nothing is kept."""
        self._assembler: Assembler | None = None

    @property
    def assembler(self) -> Assembler:
        """Made when it is first asked for, from the configured layout and policy."""
        if self._assembler is None:
            self._assembler = make_assembler(self.config, self.session, self.facilities)
        return self._assembler

    def reconcile(self, paths: Iterable[str] | None = None, patience_s: float = 0.0) -> None:
        """Read files that may have changed: those named, or all that the session has met. Those
        that are being written are waited for, `patience_s` at most."""
        files = self._files() if paths is None else paths
        look_again(self.session.objects, self.session.inbox, files, patience_s)
        self.watch.follow()
        # What was still being written is read once more in a moment.
        self.watch.remind()

    def prepare(self) -> None:
        """Much was stored at once: work out now what the next call would need of it."""
        self.assembler.prepare()
        self._follow_sections()

    def end_tools(self) -> None:
        """A prompt is being assembled: no tool runs."""
        if self.guard is not None:
            self.guard.forget()
        if self.keeper is not None:
            self.keeper.forget()

    def _files(self) -> list[str]:
        entries = self.session.objects.index.entries.values()
        return [entry.object for entry in entries if entry.type == "file"]

    def close(self) -> None:
        """The session ends: bring the layers nearer to the store for the next opening, and let
        others claim what it had claimed."""
        if self.keeper is not None:
            self.keeper.settle(CLOSING_S)
        self._follow_layers()
        if self.facilities.tasks is not None:
            self.facilities.tasks.active.end_leases()

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

    def settle_claim(self) -> None:
        """Where the session has claimed a task while the database was away: have it decided, if
        that is back. The user reads of it at once, the model with the next call."""
        if self.facilities.tasks is None:
            return
        try:
            for line in self.facilities.tasks.settle_claim():
                self.session.inbox.notify(line)
        except StoreError as error:
            log.warning("a provisional claim is not settled yet: %s", error)

    def with_tasks(self, answer: Answer) -> Answer:
        """The answer, with what the host shows of the project's tasks, where it has any. What its
        next session declares is brought up to date. A failure of either is only logged."""
        if self.switches is None:
            return answer
        self.switches.refresh()
        try:
            tasks = self.facilities.tasks
            if tasks is not None and self.switches.holds_tasks():
                answer["tasks"] = {"line": tasks.status_line()}
        except ForedeckError as error:
            log.warning("the project's tasks cannot be shown: %s", error)
        return answer

"""A session at work: state, facilities, assembler, watched files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from foredeck.config import Config
from foredeck.context.assembler import Assembler
from foredeck.context.head import FollowingSection
from foredeck.context.intake.file_changes import look_again
from foredeck.context.state.facilities import Facilities, Part
from foredeck.context.state.session import Session, SessionFolder
from foredeck.derived.layer import TimeBudget
from foredeck.engine.hooks import (
    AnswerReader,
    BeginningPart,
    LeavingPart,
    ResultReader,
    SettlingPart,
    StatusPart,
    WorkFollower,
)
from foredeck.engine.switches import Switches
from foredeck.engine.watching import NoWatch, SessionWatch, files_met
from foredeck.errors import ForedeckError, ToolError
from foredeck.hosts.protocol import CommandResult, RunningTool, SessionOpenResult, ToolCallResult
from foredeck.sources.tool_calls import WRITERS
from foredeck.timeline.guard import ToolGuard
from foredeck.timeline.keeping import ChangeKeeper

log = logging.getLogger(__name__)

CLOSING_S = 0.5
"""Longest wait at a session's end for files of its last command, in seconds."""

FOLLOWING_S = 0.6
"""Seconds for taking in a session's own work while no request waits."""

PART_FAILED = "{} has failed, and the session goes on without it; foredeck's log says why."

Answer = TypeVar("Answer", SessionOpenResult, ToolCallResult, CommandResult)
Said = TypeVar("Said")


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
    _failed: set[str] = field(default_factory=set, init=False)
    """Parts of whose failure the user has heard."""

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
        """Ends what goes on in the session; never raises, since it has to end."""
        if self.keeper is not None:
            try:
                self.keeper.settle(CLOSING_S)
            except Exception:
                log.exception("the last changes of files are not kept")
        if self._assembler is not None:
            self.layers_wait = TimeBudget(FOLLOWING_S)
            self._follow_sections()
            self._ask(WorkFollower, lambda part: part.follow_work())
        self._ask(LeavingPart, lambda part: part.leave())

    def _follow_sections(self) -> None:
        self._ask(FollowingSection, lambda section: section.follow(self.layers_wait))

    def begin(self) -> None:
        """Lets the parts look at what has changed between sessions."""
        notices = self._ask(BeginningPart, lambda part: part.begin())
        self.session.inbox.user_messages += filter(None, notices)

    def read_answer(self, text: str) -> None:
        """Lets the parts take note of an answer that ended a run."""
        self._ask(AnswerReader, lambda part: part.read_answer(text))

    def read_result(self, tool: str, call: str, details: Any) -> None:
        """Lets the parts take note of what a tool returned; the user hears at once."""
        note = (lambda _name: None) if self.switches is None else self.switches.note
        answers = self._ask(ResultReader, lambda part: part.read_result(tool, call, details, note))
        for notice in filter(None, answers):
            self.session.inbox.notify(notice)

    def settle(self) -> None:
        """Settles what waited for the database; the user hears at once."""
        for notices in self._ask(SettlingPart, lambda part: part.settle()):
            for notice in notices:
                self.session.inbox.notify(notice)

    def with_status(self, answer: Answer) -> Answer:
        """The answer with the line for the user."""
        if self.switches is None:
            return answer
        self.switches.refresh()
        lines = self._ask(StatusPart, lambda part: part.status_line())
        if line := " · ".join(filter(None, lines)):
            answer["tasks"] = {"line": line}
        return answer

    def _ask(self, hook: type[Part], ask: Callable[[Part], Said]) -> list[Said]:
        """What the parts on a hook say; of one that fails the log says why, and the user hears
        once."""
        said: list[Said] = []
        for part in self.facilities.on(hook):
            name = type(part).__name__
            try:
                said.append(ask(part))
            except ForedeckError as error:
                log.warning("%s, as %s: %s", name, hook.__name__, error)
            except Exception:
                # No part may take the chat down, nor the parts after it.
                log.exception("%s fails as %s", name, hook.__name__)
                if name not in self._failed:
                    self._failed.add(name)
                    self.session.inbox.user_messages.append(PART_FAILED.format(name))
        return said


PRIVATE = (
    "This session is private: nothing said in it is kept or found outside it. What it does to "
    "files stays."
)
ALREADY = "This session is private already."
TOO_LATE = (
    "This session is not private: it has begun. Begin a private one with `pi --foredeck-private`, "
    "or with /new and then /foredeck private."
)


def settle_privacy(session: Session, *, wanted: bool) -> None:
    """Makes an opening session private if asked and not too late."""
    workspace = session.objects.workspace
    if session.chat.private and workspace.pending:
        # At once: other engines on this store must not read what is said in it.
        workspace.commit()
    if not wanted or session.chat.private:
        return
    if _has_begun(session):
        session.inbox.user_messages.append(TOO_LATE)
    else:
        session.inbox.notify(go_private(session))


def go_private(session: Session) -> str:
    """The answer for the user. Raises `ToolError` if the session has begun."""
    if session.chat.private:
        return ALREADY
    if _has_begun(session):
        raise ToolError(TOO_LATE)
    document = session.objects.document()
    assert document is not None
    changed = document.model_copy(update={"private": True})
    session.objects.workspace.put(changed.seal())
    session.objects.workspace.commit()
    session.chat.private = True
    return PRIVATE


def _has_begun(session: Session) -> bool:
    return bool(session.chat.log.newest or session.chat.turns)

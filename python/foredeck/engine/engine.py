"""The engine of one Pi process.

Its methods are those of docs/protocol.md, on one thread, so sessions need no lock.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

from foredeck.config import Config
from foredeck.context.state.facilities import MakeFacilities
from foredeck.context.state.request import Answer
from foredeck.engine import requests, tool_requests
from foredeck.engine.background import Background
from foredeck.engine.current import CurrentSession, RecoverableStore
from foredeck.engine.memory import state_warnings
from foredeck.engine.opened import OpenedSession
from foredeck.engine.opening import MakeSource, SessionOpener, configured_facilities
from foredeck.errors import Conflict, OutOfSync, StoreDamaged
from foredeck.home import typed_command
from foredeck.hosts.host import NO_HOST, CallSoon, Host
from foredeck.hosts.protocol import (
    PROTOCOL_VERSION,
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
from foredeck.model.call_values import Decision
from foredeck.store.at_work import AtWork
from foredeck.store.store import Store
from foredeck.version import __version__

log = logging.getLogger(__name__)

KEEP_SLICE_S = 0.02


class Engine:
    """Answers the shim, for one session at a time.

    `recorded` makes the source of a replay, without the disk. `store` replaces the configured one.
    """

    def __init__(
        self,
        config: Config,
        host: Host = NO_HOST,
        *,
        recorded: MakeSource | None = None,
        store: Store | None = None,
        facilities: MakeFacilities = configured_facilities,
        warnings: Sequence[str] = (),
    ) -> None:
        self._config = config
        self._warnings = list(warnings)
        self._priced_in = host.priced_in
        self._store = RecoverableStore(config, host.notify, store)
        opener = SessionOpener(config, host, recorded, facilities)
        self._background = Background(config.asking, host)
        is_real = store is None and recorded is None
        # A replay, and an engine on a store that is handed in, are no work of the user's.
        self._at_work = AtWork(config.home) if is_real else None
        self._current = CurrentSession(opener, self._store, self._background, self._at_work)
        self._later: CallSoon = host.call_soon or (lambda work: work())
        self._has_idle_time = host.call_soon is not None

    @property
    def opened(self) -> OpenedSession | None:
        return self._current.opened

    @property
    def store_warnings(self) -> Sequence[str]:
        """Warnings from opening the store."""
        return self._store.warnings

    def initialize(self, params: InitializeParams) -> InitializeResult:
        # Commands name the host's process, which is what a user can end.
        if self._at_work is not None and params.pid is not None:
            self._at_work.host = params.pid
        # Where nothing has to be kept or checked, tools do not wait for the engine.
        asks = self._config.rewind or self._config.guard != "off"
        return {
            "protocol": PROTOCOL_VERSION,
            "engine": __version__,
            "store": self._config.store,
            "deadline_ms": self._config.deadline_ms,
            "prepare_ms": self._config.prepare_ms if asks else 0,
            "command": typed_command(self._config.home),
            "warnings": [
                *self._warnings,
                *self._store.warnings,
                *state_warnings(self._config, self._store.current),
            ],
        }

    def open_session(self, params: SessionOpenParams) -> SessionOpenResult:
        with without_garbage_collection():
            opened = self._current.open(params)
        session = opened.session
        self._keep_while_idle()
        answer: SessionOpenResult = {
            "session": session.info.id,
            "calls": session.chat.log.newest,
            "objects": len(session.objects.index),
            "resumed": session.info.calls_at_opening > 0,
        }
        if session.chat.private:
            answer["private"] = True
        return opened.with_status(answer)

    def _keep_while_idle(self) -> None:
        # In slices: a request that comes meanwhile waits for one of them at most.
        def take_slice() -> None:
            if self.opened is None or self.opened.keeper is None:
                return
            with self._current.use(self.opened.session.info.id) as opened:
                if opened.keeper is not None and opened.keeper.go_on(KEEP_SLICE_S):
                    self._later(take_slice)

        if self._has_idle_time:
            self._later(take_slice)

    def _settle(self) -> None:
        if self.opened is not None:
            self.opened.settle()

    def close_session(self, params: SessionCloseParams) -> NoResult:
        self._current.close(params.session)
        return {}

    def close(self) -> None:
        """Closes the session and the store."""
        self._current.close()
        self._store.current.close()
        if self._at_work is not None:
            self._at_work.close()

    def take_history(self, params: SessionHistoryParams) -> SessionHistoryResult:
        with without_garbage_collection(), self._current.use(params.session) as opened:
            messages = requests.take_history(opened, params)
            self._current.follow()
            return {"messages": messages}

    def assemble(self, params: AssembleParams) -> AssembleResult:
        """What the model sees of a message list, after committing it."""
        # The first request of a long session makes objects of all its messages.
        is_first = self.opened is None or self.opened.session.chat.branch.ahead
        goes_on = params.keep > 0 and not is_first
        # A call that goes on makes little that lasts, and its garbage would be left out of later
        # collections, too.
        with nullcontext() if goes_on else without_garbage_collection():
            # Catching up needs an open session. Where it fails the session is forgotten, and
            # opened again for the call.
            self._current.require(params.session)
            self._current.begin_anew_if_forgotten()
            newest = params.messages[-1] if params.messages else {}
            self._current.catch_up(after_user=newest.get("role") == "user")
            before = None
            if self.opened is not None:
                # After catching up: the model reads what was refused with this very prompt.
                self.opened.end_tools()
                before = self.opened.session.chat.newest_record
            opened, answer = self._assemble(params)
            requests.advise_user(opened, before)
            self._current.follow()
            # After the call: what the tools reported is in this prompt. Where the disk differs,
            # the next prompt has a notice of it.
            if stale := opened.session.inbox.pop_stale():
                self._current.reconcile(stale)
            # While the model thinks: no request waits for what a database says.
            self._later(self._settle)
            self._later(lambda: self._background.happened("call"))
            return requests.assembled(opened, answer, self._store.current.trouble, self._priced_in)

    def _assemble(self, params: AssembleParams) -> tuple[OpenedSession, Answer]:
        try:
            with self._current.use(params.session) as opened:
                return opened, requests.assemble(opened, params)
        except Conflict as error:
            # The session was forgotten. With the whole list it is aligned with the records of both.
            raise OutOfSync("The session has gone on in another process.") from error
        except StoreDamaged as damage:
            self._current.recover(damage)
            raise OutOfSync("The store was damaged: a fresh one takes its place.") from damage

    @property
    def decision(self) -> Decision:
        """The decision of the newest call, with its reason."""
        record = self.opened.session.chat.branch_record if self.opened else None
        return record.decision if record else Decision()

    def tool_call(self, params: ToolCallParams) -> ToolCallResult:
        try:
            return self._tool_call(params)
        except Conflict:
            # Another process has given out the same handle. The session has been forgotten:
            # opened again, it takes the next one.
            return self._tool_call(params)

    def _tool_call(self, params: ToolCallParams) -> ToolCallResult:
        with self._current.use(params.session) as opened:
            return tool_requests.run_tool(opened, params)

    def prepare_tool(self, params: ToolPrepareParams) -> ToolPrepareResult:
        with self._current.use(params.session) as opened:
            return tool_requests.prepare_tool(opened, params)

    def tool_started(self, params: ToolStartedParams) -> None:
        tool_requests.start_tool(self._current.require(params.session), params)

    def tool_observed(self, params: ToolObservedParams) -> None:
        # Where this fails, or the process ends within it, the next list still brings the result:
        # `store_lost_results` does then what was missed here.
        with self._current.use(params.session) as opened:
            tool_requests.observe_tool(opened, params)
        # Only now: most changes that were held back while it ran are its own. They are stored by
        # now, and make no notice.
        opened.watch.release(params.id)
        if not params.is_error:
            opened.read_result(params.tool, params.id, params.details)
        self._current.follow()
        self._later(lambda: self._background.happened("tool"))
        self._keep_while_idle()

    def command(self, params: CommandParams) -> CommandResult:
        """Runs a command typed by the user."""
        with self._current.use(params.session) as opened:
            if opened.keeper is not None:
                # A rewind must know what the last command has changed.
                opened.keeper.settle()
            # Not at the top: an engine starts without what people ask of it now and then.
            from foredeck.engine.commands import run_command

            answer = run_command(opened, params.name, params.args.strip())
            self._later(lambda: self._background.happened("command"))
            return answer

    def refused(self, params: RefusedParams) -> RefusedResult:
        with self._current.use(params.session) as opened:
            return {"again": opened.assembler.refusals.take(params.message)}

    def compact(self, params: SessionCompactParams) -> SessionCompactResult:
        with self._current.use(params.session) as opened:
            answer = requests.compact(opened, params)
        # The chat is still whole: what is due for it is done now.
        if params.reason == "manual":
            self._later(lambda: self._background.happened("compaction"))
        return answer

    def session_event(self, params: SessionEventParams) -> None:
        log.debug("session event %s", params.kind)
        if params.kind in ("compact", "uncompact") and params.summary:
            with self._current.use(params.session) as opened:
                requests.note_compaction(opened, params)
        if params.kind == "answer" and params.message is not None:
            with self._current.use(params.session) as opened:
                answer = requests.store_answer(opened, params.message, params.entry)
            opened.read_answer(answer)
            self._later(lambda: self._background.happened("answer"))


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Suspends garbage collection while a long session is loaded."""
    # Collecting takes a fifth of the time then, and finds nothing.
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            # What is frozen is still freed once nothing refers to it, but for reference cycles.
            gc.freeze()
            gc.enable()

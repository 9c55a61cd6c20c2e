"""The engine: one per Pi process. Wires store, sources, context and the host's adapter.

Its methods are those of docs/protocol.md, with their parameters parsed. They are synchronous and
must be called from one thread.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from foredeck import __version__
from foredeck.accounting.figure import session_figure
from foredeck.config import Config
from foredeck.context.calls.reports import unpriced
from foredeck.context.intake.early_results import store_early_result, take_answer
from foredeck.context.messages.shape import to_item
from foredeck.context.state.request import Answer
from foredeck.context.state.session import Session
from foredeck.context.status import status_line
from foredeck.context.window.compactions import take_back
from foredeck.engine.background.asking import Show
from foredeck.engine.background.background import Background
from foredeck.engine.current import CurrentSession
from foredeck.engine.facility import MakeFacilities, configured_facilities
from foredeck.engine.findings import propose_found, questions_of
from foredeck.engine.memory import state_warnings
from foredeck.engine.opening import MakeSource, OpenedSession, SessionOpener
from foredeck.engine.recovery import RecoverableStore
from foredeck.engine.task_commands import with_tasks
from foredeck.engine.watching import CallSoon
from foredeck.errors import Conflict, OutOfSync, StoreDamaged
from foredeck.home import typed_command
from foredeck.hosts.asking import AskModels
from foredeck.hosts.outgoing import to_ops
from foredeck.hosts.pi.requests import (
    ends_with_user,
    full_output,
    to_blocks,
    to_compaction_request,
    to_history,
    to_nesting,
    to_request,
    to_tool_event,
)
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
    UserMessage,
)
from foredeck.memory.findings import PromoteFinding
from foredeck.model.call_values import Decision
from foredeck.model.calls import CallRecord
from foredeck.model.own_tools import FACILITY_TOOLS
from foredeck.sources.indexing import ToolEvent
from foredeck.sources.toolpaths import WRITERS
from foredeck.store.at_work import AtWork
from foredeck.store.protocol import Notify, Store, silent

if TYPE_CHECKING:
    from foredeck.context.tools.tools import ContextTools

log = logging.getLogger(__name__)

KEEPING_BIT_S = 0.02


class Engine:
    """Answers the shim, for one session at a time.

    `call_soon` runs a function on the engine's thread from any other; without it no files are
    watched. `recorded` makes the source of a replay, where the disk is not read. `store`
    takes the place of the configured one; the engine closes it too. `facilities` makes what a
    session has beside its chat. `models` are those of the host; without them nothing is done in
    the background. `show` shows the user what is. `warnings`: what the user is to read once.
    """

    def __init__(
        self,
        config: Config,
        *,
        notify: Notify = silent,
        call_soon: CallSoon | None = None,
        recorded: MakeSource | None = None,
        store: Store | None = None,
        facilities: MakeFacilities = configured_facilities,
        models: AskModels | None = None,
        show: Show = lambda _text: None,
        warnings: Sequence[str] = (),
    ) -> None:
        self._config = config
        self._warnings = list(warnings)
        self._store = RecoverableStore(config, notify, store)
        opener = SessionOpener(config, notify, call_soon, recorded, facilities)
        self._background = Background(config.asking, models, show)
        is_real = store is None and recorded is None
        self._at_work = AtWork(config.home) if is_real else None
        self._current = CurrentSession(opener, self._store, self._background, self._at_work)
        self._later: CallSoon = call_soon or (lambda work: work())
        self._has_idle_time = call_soon is not None

    @property
    def opened(self) -> OpenedSession | None:
        """The session at work."""
        return self._current.opened

    def initialize(self, params: InitializeParams) -> InitializeResult:
        """Say who we are; the versions of the protocol have been compared already."""
        if self._at_work is not None and params.pid is not None:
            self._at_work.host = params.pid
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
        """Open a session; the one before is closed. Idempotent."""
        with without_garbage_collection():
            opened = self._current.open(params)
        session = opened.session
        self._go_on_keeping()
        answer: SessionOpenResult = {
            "session": session.info.id,
            "calls": session.chat.log.newest,
            "objects": len(session.objects.index),
            "resumed": session.info.calls_at_opening > 0,
        }
        if session.chat.private:
            answer["private"] = True
        return with_tasks(answer, opened)

    def _go_on_keeping(self) -> None:
        """Read files for what is kept of them, bit by bit while the engine is idle: a request
        that comes meanwhile waits for one bit at most."""

        def bit() -> None:
            if self.opened is None or self.opened.keeper is None:
                return
            with self._current.use(self.opened.session.info.id) as opened:
                if opened.keeper is not None and opened.keeper.go_on(KEEPING_BIT_S):
                    self._later(bit)

        if self._has_idle_time:
            self._later(bit)

    def close_session(self, params: SessionCloseParams) -> NoResult:
        """Close a session; everything about it is in the store."""
        self._current.close(params.session)
        return {}

    def close(self) -> None:
        """Close the session and the store."""
        self._current.close()
        self._store.close()
        if self._at_work is not None:
            self._at_work.close()

    def take_history(self, params: SessionHistoryParams) -> SessionHistoryResult:
        """Take in what a session holds, before its first call would have to wait for that."""
        with without_garbage_collection(), self._current.use(params.session) as opened:
            blobs, known = opened.session.objects.workspace.blobs, opened.session.chat.log.messages
            messages = opened.assembler.take_history(to_history(params, blobs, known))
            opened.prepare()
            self._current.follow()
            return {"messages": messages}

    def assemble(self, params: AssembleParams) -> AssembleResult:
        """What the model shall see of a message list; committed before this returns."""
        # The first request of a long session makes objects of all its messages.
        with nullcontext() if self._goes_on(params) else without_garbage_collection():
            # Catching up needs an open session. Where it fails the session is forgotten, and
            # opened again for the call.
            self._current.require(params.session)
            self._current.begin_anew_if_forgotten()
            self._current.catch_up(after_user=ends_with_user(params))
            # After catching up: the model reads what was refused with this very prompt.
            self._current.end_tools()
            before = self._newest_call()
            session, answer = self._assemble(params)
            self._offer_to_rewind(before)
            if before is None and self.opened is not None:
                # Not at the top: only a session's first call asks.
                from foredeck.engine.crowded import tell_of_rules

                tell_of_rules(self.opened)
            self._current.follow()
            # After the call: what the tools reported is in this prompt. Where the disk differs,
            # the next prompt has a notice of it.
            if stale := session.inbox.take_stale():
                self._current.reconcile(stale)
            # While the model thinks: nobody waits for what a database says then.
            self._later(self._current.settle_claim)
            self._later(self._current.keep)
            self._later(lambda: self._background.happened("call"))
            return self._result(session, answer)

    def _goes_on(self, params: AssembleParams) -> bool:
        """Whether it saves little, so that what was sent stays."""
        is_first = self.opened is None or self.opened.session.chat.branch.ahead
        return params.keep > 0 and not is_first

    def _newest_call(self) -> CallRecord | None:
        return self.opened.session.chat.newest_record if self.opened is not None else None

    def _offer_to_rewind(self, before: CallRecord | None) -> None:
        """A chat that goes on from an earlier place has files from a later one."""
        opened = self.opened
        if opened is None or opened.keeper is None:
            return
        record = opened.session.chat.branch_record
        if record is None or record.parent == (None if before is None else before.id):
            return  # as nearly always; what plans a rewinding is imported for the others
        # Loads with the first request for it.
        from foredeck.timeline.rewind_command import offer

        if (text := offer(opened.session.objects.store, opened.session.info, record)) is not None:
            opened.session.inbox.user_messages.append(text)

    def _assemble(self, params: AssembleParams) -> tuple[Session, Answer]:
        try:
            with self._current.use(params.session) as opened:
                blobs = opened.session.objects.workspace.blobs
                try:
                    request = to_request(params, blobs, opened.session.chat.log.messages)
                    opened.session.inbox.typed += params.typed
                    return opened.session, opened.assembler.assemble(request)
                except OutOfSync:
                    blobs.clear()  # the host sends all of it again
                    raise
        except Conflict as error:
            raise OutOfSync("The session has gone on in another process.") from error
        except StoreDamaged as damage:
            self._current.recover(damage)
            raise OutOfSync("The store was damaged: a fresh one takes its place.") from damage

    def _result(self, session: Session, answer: Answer) -> AssembleResult:
        items = session.chat.branch.plan.items
        record = session.chat.branch_record
        assert record is not None  # that of the call which was just assembled
        figure = session_figure(session.objects.store, session.info.id, record)
        status = status_line(record.stats, figure.short if figure.matters else "")
        if trouble := self._store.trouble:
            status = f"{status}, {trouble}"
        return {
            "call": answer.call,
            "from": answer.start,
            "ops": to_ops(answer.outgoing, lambda index: items[index].time_ms, answer.start),
            "marker": answer.marker or None,
            "status": {"text": status},
            "notices": _user_messages(session),
        }

    @property
    def decision(self) -> Decision:
        """What was decided at the newest call of the open session, and why."""
        record = self.opened.session.chat.branch_record if self.opened else None
        return record.decision if record else Decision()

    def tool_call(self, params: ToolCallParams) -> ToolCallResult:
        """One of the model's tools that are ours. Raises `ToolError` with a text for the model."""
        try:
            return self._tool_call(params)
        except Conflict:
            # Another process has given out the same handle. The session has been forgotten:
            # opened again, it takes the next one.
            return self._tool_call(params)

    def _tool_call(self, params: ToolCallParams) -> ToolCallResult:
        with self._current.use(params.session) as opened:
            if (tool := opened.facilities.tools.get(params.tool)) is not None:
                text = tool.run(params.input, params.id)
                answer: ToolCallResult = {"text": text, "details": {}}
                if isinstance(tool, PromoteFinding):
                    answer["questions"] = questions_of(self._config, opened, tool)
                about_tasks = params.tool in FACILITY_TOOLS["tasks"]
                return with_tasks(answer, opened) if about_tasks else answer
            tools = self._context_tools(opened)
            made = tools.run(params.tool, params.input, params.id)
        result: ToolCallResult = {"text": made.text, "details": {"foredeck": made.decision}}
        if made.images:
            result["images"] = made.images
        return result

    def _context_tools(self, opened: OpenedSession) -> ContextTools:
        # Loads with the first request for it.
        from foredeck.context.tools.tools import ContextTools

        session, memory = opened.session, opened.features.memory
        return ContextTools(session.objects, session.chat, session.inbox, memory)

    def prepare_tool(self, params: ToolPrepareParams) -> ToolPrepareResult:
        """A tool that may write files is about to run: whether it may, and what it may write; or
        one that may show a file."""
        with self._current.use(params.session) as opened:
            if params.tool in FACILITY_TOOLS["context"]:
                shown = self._context_tools(opened).reads(params.tool, params.input)
                return {} if shown is None else {"reads": shown}
            verdict = opened.guard.prepare(params.id, params.tool, params.input)
            if verdict.block is None and opened.keeper is not None:
                known = opened.guard.known_files
                opened.keeper.begin(params.id, params.tool, params.input, known)
            if params.tool not in WRITERS:
                opened.watch.hold_all(params.id)
        answer: ToolPrepareResult = {}
        if verdict.block is not None:
            answer["block"] = verdict.block
        if verdict.notice is not None:
            answer["notice"] = verdict.notice
        return answer

    def tool_started(self, params: ToolStartedParams) -> None:
        """A tool that names a file is about to run: what it writes there is its own doing."""
        opened = self._current.require(params.session)
        event = ToolEvent(params.tool, {"path": params.path}, "", cwd=opened.session.info.cwd)
        opened.watch.hold(params.id, event)

    def tool_observed(self, params: ToolObservedParams) -> None:
        """A tool has run: keep its result and look at the files it touched."""
        with self._current.use(params.session) as opened:
            if opened.keeper is not None:
                opened.keeper.end(params.id)
            changed = opened.guard.changed_by(params.id, params.tool)
            event = to_tool_event(params, opened.session.info.cwd, changed)
            blocks, output = to_blocks(params), full_output(event.details)
            found = store_early_result(
                opened.session.objects,
                opened.session.chat,
                opened.session.inbox,
                event,
                params.id,
                blocks,
                output,
                to_nesting(params),
            )
            opened.guard.observed(params.id, event, found)
            if opened.keeper is not None:
                # After the result: what a command names of files that only now are stored must not
                # join the session.
                opened.keeper.store_versions()
        opened.watch.release(params.id)
        if not params.is_error:
            propose_found(self._config, opened, params.tool, params.id, params.details)
        self._current.follow()
        self._later(lambda: self._background.happened("tool"))
        self._go_on_keeping()

    def command(self, params: CommandParams) -> CommandResult:
        """What the user typed: after `/foredeck`, or `/tasks` and `/search`."""
        with self._current.use(params.session) as opened:
            if opened.keeper is not None:
                opened.keeper.settle()
            # Not at the top: an engine starts without what people ask of it now and then.
            from foredeck.engine.commands import run_command

            answer = run_command(opened, self._config, params.name, params.args.strip())
            self._later(lambda: self._background.happened("command"))
            return with_tasks(answer, opened) if params.name == "tasks" else answer

    def refused(self, params: RefusedParams) -> RefusedResult:
        """The provider has refused the newest prompt: whether another one would go out now."""
        with self._current.use(params.session) as opened:
            return {"again": opened.assembler.take_refusal(params.message)}

    def compact(self, params: SessionCompactParams) -> SessionCompactResult:
        """What to do about a compaction that the host has in mind."""
        # Not at the top, as in `command`.
        from foredeck.engine.settings import compaction_settings

        settings = compaction_settings(self._config)
        with self._current.use(params.session) as opened:
            decision = opened.assembler.compact(to_compaction_request(params), settings)
        if params.reason == "manual":
            self._later(lambda: self._background.happened("compaction"))
        told: SessionCompactResult = {"action": decision.action}
        if decision.notice:
            told["notice"] = decision.notice
        if (made := decision.made) is not None:
            told["summary"] = made.summary
            told["details"] = {"foredeck": {"object": made.id, "ordinal": made.ordinal}}
        if decision.keep is not None:
            told["keep"] = decision.keep
        return told

    def session_event(self, params: SessionEventParams) -> None:
        """Something that the next request will show anyway."""
        log.debug("session event %s", params.kind)
        if params.kind == "compact" and params.summary:
            with self._current.use(params.session) as opened:
                opened.assembler.finish_compaction(params.summary, params.by)
        if params.kind == "uncompact" and params.summary:
            with self._current.use(params.session) as opened:
                take_back(opened.session.objects, opened.session.chat.compactions, params.summary)
        if params.kind == "answer" and params.message is not None:
            with self._current.use(params.session) as opened:
                blobs = opened.session.objects.workspace.blobs
                answer = to_item(params.message, params.entry, blobs)
                session = opened.session
                take_answer(
                    session.objects,
                    session.chat,
                    session.inbox,
                    answer,
                    opened.features.active_task,
                )
            self._later(self._current.keep)
            opened.note_answer(answer)
            self._later(lambda: self._background.happened("answer"))


def _user_messages(session: Session) -> list[UserMessage]:
    """What the user reads with this answer; each text is given once."""
    texts = session.inbox.take_user_messages()
    if (text := unpriced(session.objects.workspace, session.chat)) is not None:
        texts.append(text)
    return [{"level": "info", "text": text} for text in texts]


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Collect no garbage while many lasting objects are made, as when a long session is loaded:
    collecting takes a fifth of the time then, and finds nothing.

    The objects made are left out of later collections, too. They are still freed once nothing
    refers to them, except for those in a reference cycle.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.freeze()
            gc.enable()

"""The engine: one per Pi process. Wires store, sources, context and the host's adapter.

Its methods are those of docs/protocol.md, with their parameters parsed. They are synchronous and
must be called from one thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from foredeck import __version__
from foredeck.config import Config
from foredeck.context.assembler import Assembler, Settings
from foredeck.context.cache.economics import RebaseThresholds
from foredeck.context.cache.rebase import WaterMarks
from foredeck.context.digests import DigestSize
from foredeck.context.intake.adoption import told_of_lines
from foredeck.context.intake.observing import observe, take_answer
from foredeck.context.intake.reconcile import PATIENCE_S, look_again
from foredeck.context.policies.registry import make_policy
from foredeck.context.rendering.layouts import make_layout
from foredeck.context.reports import unpriced
from foredeck.context.rewriting.rewriting import RebaseSettings
from foredeck.context.state.opening import open_session
from foredeck.context.state.session import Recall, Session
from foredeck.context.status import cost_so_far, status_line
from foredeck.context.tools.listing import describe_session, name_object
from foredeck.context.tools.reasons import why
from foredeck.context.tools.tools import ContextTools
from foredeck.context.window.compacting import CompactionSettings, finish
from foredeck.engine.garbage import without_collecting
from foredeck.engine.resumption import keep_uses, recall_uses
from foredeck.engine.watching import SessionWatch, Soon
from foredeck.errors import Conflict, OutOfSync, StoreDamaged, StoreError, ToolError, UnknownSession
from foredeck.hosts.pi.edits import to_wire
from foredeck.hosts.pi.files import unreadable_lines
from foredeck.hosts.pi.messages import to_item
from foredeck.hosts.pi.outputs import full_output
from foredeck.hosts.pi.requests import to_blocks, to_request, to_tool_event, to_wish
from foredeck.hosts.protocol import (
    PROTOCOL_VERSION,
    AssembleParams,
    AssembleResult,
    CommandParams,
    CommandResult,
    HostObject,
    InitializeParams,
    InitializeResult,
    NoResult,
    SessionCloseParams,
    SessionCompactParams,
    SessionCompactResult,
    SessionEventParams,
    SessionOpenParams,
    SessionOpenResult,
    ToolCallParams,
    ToolCallResult,
    ToolObservedParams,
    ToolStartedParams,
    UserMessage,
)
from foredeck.sources import FileSource, ToolEvent
from foredeck.sources.opening import open_filesystems, open_source
from foredeck.store.opening import open_beside, open_store, store_file
from foredeck.store.protocol import Store
from foredeck.store.quarantine import inode_of

Notify = Callable[[str, str], None]
"""Tells the user something: a level (`info`, `warning`, `error`) and a text."""

log = logging.getLogger(__name__)


class Engine:
    """Holds the open session and answers the shim.

    `call_soon` runs a function on the engine's thread from any other; without it no files are
    watched. `recorded` makes the source of a replay, where the disk is not looked at. `store`
    takes the place of the configured one; the engine closes it too.
    """

    def __init__(
        self,
        config: Config,
        *,
        notify: Notify | None = None,
        call_soon: Soon | None = None,
        recorded: Callable[[Store, str], FileSource] | None = None,
        store: Store | None = None,
    ) -> None:
        self._config = config
        self._call_soon = call_soon
        self._recorded = recorded
        self._notify = notify or (lambda _level, _text: None)
        self._warnings: list[str] = []
        self._is_given = store is not None
        self._inode = inode_of(store_file(config))
        self._store = store or self._open_store()
        self._session: Session | None = None
        self._assembler: Assembler | None = None
        self._watch: SessionWatch | None = None
        self._opened: SessionOpenParams | None = None
        self._calls_at_open: int | None = None

    def initialize(self, params: InitializeParams) -> InitializeResult:
        """Say who we are; the versions of the protocol have been compared already."""
        del params
        return {
            "protocol": PROTOCOL_VERSION,
            "engine": __version__,
            "store": self._config.store,
            "deadline_ms": self._config.deadline_ms,
            "warnings": self._warnings,
        }

    def _open_store(self) -> Store:
        """The configured store; a fresh one where that is damaged."""
        try:
            store = open_store(self._config, notify=self._notify)
        except StoreDamaged as damage:
            store, text = open_beside(self._config, damage, self._inode, notify=self._notify)
            self._warnings.append(text)
        self._inode = inode_of(store_file(self._config))
        return store

    def _begin_beside(self, damage: StoreDamaged) -> None:
        """The store was found damaged at work: go on with a fresh one. Raises `StoreDamaged`."""
        self._forget()
        if self._is_given:
            raise damage
        with suppress(StoreError):
            self._store.close()
        self._store, text = open_beside(self._config, damage, self._inode, notify=self._notify)
        self._inode = inode_of(store_file(self._config))
        self._calls_at_open = None
        self._notify("error", text)

    def open_session(self, params: SessionOpenParams) -> SessionOpenResult:
        """Open a session, the one before is closed. Idempotent."""
        if self._session is None or self._session.id != params.session:
            self._opened, self._calls_at_open = params, params.calls
            with without_collecting():
                self._open(params)
        session = self._current(params.session)
        return {
            "session": session.id,
            "calls": session.log.newest,
            "objects": len(session.index),
            "resumed": session.calls_at_opening > 0,
        }

    def assemble(self, params: AssembleParams) -> AssembleResult:
        """What the model shall see of a message list; committed before this returns."""
        if params.keep:
            return self._assemble(params)
        with without_collecting():
            return self._assemble(params)

    def _assemble(self, params: AssembleParams) -> AssembleResult:
        # Opened for what there is to catch up with, and once more where that has failed.
        self._current(params.session)
        self._catch_up(params)
        session = self._current(params.session)
        try:
            answer = self._assembler_of(session).assemble(
                to_request(params, session.workspace.blobs, session.log.known)
            )
        except OutOfSync:
            session.workspace.blobs.clear()
            raise
        except Conflict as error:
            # Another process works on this session: go on from what it has stored.
            self._forget()
            raise OutOfSync("The session has gone on in another process.") from error
        except StoreDamaged as damage:
            self._begin_beside(damage)
            raise OutOfSync("The store was damaged: a fresh one takes its place.") from damage
        except Exception:
            # What is in memory may be ahead of what is stored: begin anew from the store.
            self._forget()
            raise
        self._follow()
        if stale := session.pending.take_stale():
            self._reconcile_quietly(stale)
        # Only messages of ours need a time; a long list is not walked for nothing.
        items = session.branch.conversation.items if answer.inserts else []
        wire = to_wire(answer, [item.time_ms for item in items])
        status = status_line(session.log.records[session.branch.call or ""])
        if trouble := getattr(self._store, "trouble", ""):
            status = f"{status}, {trouble}"
        return {**wire, "status": {"text": status}, "notices": _notices(session)}

    @property
    def decision(self) -> Mapping[str, Any]:
        """What was decided at the newest call of the open session, and why; empty before one."""
        session = self._session
        if session is None or session.branch.call is None:
            return {}
        decision: Mapping[str, Any] = session.log.records[session.branch.call]["decision"]
        return decision

    def tool_call(self, params: ToolCallParams) -> ToolCallResult:
        """One of the model's context tools. Raises `ToolError` with a text for the model."""
        try:
            return self._tool_call(params)
        except Conflict:
            # Another process has given out the same handle: take the next one.
            self._forget()
            return self._tool_call(params)

    def _tool_call(self, params: ToolCallParams) -> ToolCallResult:
        session = self._current(params.session)
        tools = ContextTools(session, max_chars=self._config.limits.activate_chars)
        answer = tools.run(params.tool, params.input, params.id)
        return {"text": answer.text, "details": {"foredeck": answer.decision}}

    def tool_started(self, params: ToolStartedParams) -> None:
        """A tool that names a file is about to run: what it writes there is its own doing."""
        session = self._current(params.session)
        event = ToolEvent(params.tool, {"path": params.path}, "", cwd=session.cwd)
        if self._watch is not None:
            self._watch.hold(params.id, event)

    def observe(self, params: ToolObservedParams) -> None:
        """A tool has run: keep its result and look at the files it touched."""
        session = self._current(params.session)
        event = to_tool_event(params, session.cwd)
        try:
            observe(session, event, params.id, to_blocks(params), full_output(event.details))
        except Exception:
            self._forget()
            raise
        if self._watch is not None:
            self._watch.release(params.id)
        self._follow()

    def command(self, params: CommandParams) -> CommandResult:
        """What the user typed after `/foredeck`."""
        session = self._current(params.session)
        arguments = params.args.strip()
        match params.name:
            case "list":
                return {"text": describe_session(session)}
            case "name":
                return {"text": name_object(session, arguments)}
            case "why":
                assembler = self._assembler_of(session)
                return {"text": why(session, arguments, assembler.policy, assembler.uses)}
            case "cost":
                return {"text": cost_so_far(session)}
        raise ToolError(
            f"foredeck has no command {params.name!r}. Commands: list, name, why, cost."
        )

    def compact(self, params: SessionCompactParams) -> SessionCompactResult:
        """What to do about a compaction that the host has in mind."""
        session = self._current(params.session)
        wish = to_wish(params)
        try:
            verdict = self._assembler_of(session).compact(wish, manner_of(self._config))
        except Exception:
            self._forget()
            raise
        if verdict.made is None:
            return {"action": verdict.action}
        made = verdict.made
        details = {"foredeck": {"object": made.id, "ordinal": made.ordinal}}
        return {"action": verdict.action, "summary": made.summary, "details": details}

    def session_event(self, params: SessionEventParams) -> None:
        """Something that the next request will show anyway."""
        log.debug("session event %s", params.kind)
        if params.kind == "compact" and params.summary:
            finish(self._current(params.session), params.summary, params.by)
        if params.kind == "answer" and params.message is not None:
            self._take_answer(self._current(params.session), params.message, params.entry)

    def _take_answer(self, session: Session, message: HostObject, entry: str | None) -> None:
        try:
            take_answer(session, to_item(message, entry, session.workspace.blobs))
        except Exception:
            self._forget()
            raise
        self._keep()

    def reconcile(self, paths: Iterable[str] | None = None, patience_s: float = 0.0) -> None:
        """Look at files that may have changed: those named, or all that the session tracks.

        Those that are being written are waited for, `patience_s` at most; then their turn comes
        later.
        """
        session = self._session
        if session is None:
            return
        look_again(session, tracked(session) if paths is None else paths, patience_s)
        if self._watch is not None:
            self._watch.remind()

    def close_session(self, params: SessionCloseParams) -> NoResult:
        """Let go of a session; everything about it is in the store."""
        if self._session is not None and self._session.id == params.session:
            self._keep()
            self._forget()
            self._opened = None
        return {}

    def close(self) -> None:
        """Close the store."""
        self._keep()
        self._forget()
        self._store.close()

    def _open(self, params: SessionOpenParams) -> None:
        try:
            self._session = self._load(params)
        except StoreDamaged as damage:
            self._begin_beside(damage)
            self._session = self._load(params)
        if self._calls_at_open is None:
            self._calls_at_open = self._session.calls_at_opening
        self._session.calls_at_opening = self._calls_at_open
        self._assembler = None
        self.reconcile()
        self._follow()

    def _load(self, params: SessionOpenParams) -> Session:
        cwd = params.cwd
        filesystems = open_filesystems(self._config, cwd)
        if self._recorded is not None:
            source = self._recorded(self._store, cwd)
        else:
            source = open_source(self._config, self._store, filesystems)
        session = open_session(
            self._store,
            source,
            params.session,
            cwd=cwd,
            host_file=params.file,
            parent=params.parent,
            started_by=params.started_by,
            recall=_recorded(source) if self._recorded else None,
        )
        lost = unreadable_lines(params.file or "") if not session.log.newest else 0
        if lost:
            session.pending.user_messages.append(told_of_lines(lost))
        session.notify = partial(self._notify, "info")
        if self._call_soon is not None and self._config.sources.watch:
            self._watch = SessionWatch(
                session,
                filesystems,
                soon=self._call_soon,
                reconcile=self._reconcile_quietly,
                notify=self._notify,
            )
        return session

    def _catch_up(self, params: AssembleParams) -> None:
        """Before the user's word is answered: what they saved a moment ago counts."""
        if self._watch is not None:
            self._watch.release()
        asked = bool(params.messages) and params.messages[-1].get("role") == "user"
        late = set() if self._session is None else set(self._session.pending.unsettled)
        if asked and self._watch is not None:
            late.update(self._watch.differing())
        if late:
            self._reconcile_quietly(sorted(late), PATIENCE_S if asked else 0.0)

    def _follow(self) -> None:
        if self._watch is not None:
            self._watch.follow()

    def _reconcile_quietly(self, paths: Iterable[str] | None, patience_s: float = 0.0) -> None:
        """As `reconcile`, where nobody waits for an answer: the next request tries again."""
        try:
            self.reconcile(paths, patience_s)
        except Exception:
            log.exception("reconciling changed files failed")
            self._forget()

    def _keep(self) -> None:
        """Nobody waits now: keep what the next engine would have to find again."""
        if self._session is not None and self._assembler is not None:
            keep_uses(self._config.home, self._session.id, self._assembler.uses)

    def _forget(self) -> None:
        if self._watch is not None:
            self._watch.stop()
        self._session, self._assembler, self._watch = None, None, None

    def _current(self, id: str) -> Session:
        opened = self._opened
        if self._session is None and opened is not None and opened.session == id:
            self._open(opened)
        if self._session is None or self._session.id != id:
            raise UnknownSession(f"Session {id!r} is not open.")
        return self._session

    def _assembler_of(self, session: Session) -> Assembler:
        if self._assembler is None:
            config = self._config
            self._assembler = Assembler(
                session,
                make_layout(config.layout),
                make_policy(config.policy, config),
                settings_of(config),
            )
            if session.log.newest:
                recall_uses(config.home, session.id, self._assembler.uses)
        return self._assembler


def _recorded(source: FileSource) -> Recall:
    """In a replay the tool's own words are all there is to tell of its files."""
    return lambda event, pending: source.after_tool(event, pending=pending)


def _notices(session: Session) -> list[UserMessage]:
    """What the user is told with an answer, once."""
    texts = session.pending.take_user_messages()
    told = unpriced(session)
    if told is not None:
        texts.append(told)
    return [{"level": "info", "text": text} for text in texts]


def settings_of(config: Config) -> Settings:
    """The part of the configuration that the assembler needs."""
    return Settings(
        RebaseSettings(
            WaterMarks(config.rebase.high_water, config.rebase.low_water),
            RebaseThresholds(
                config.rebase.rent_factor, config.rebase.guard, config.rebase.closing_factor
            ),
        ),
        config.rebase.cache_ttl_s,
        None if config.rebase.cache == "auto" else config.rebase.cache,
        config.rebase.min_saving_tokens * 4,
        DigestSize(config.digests.max_tokens * 4, config.digests.max_share),
        config.compaction.summary_tokens * 4,
    )


def manner_of(config: Config) -> CompactionSettings:
    """The part of the configuration that compactions need."""
    told = config.compaction
    chars = told.summary_tokens * 4
    return CompactionSettings(told.automatic, told.manual, chars, config.rebase.high_water)


def tracked(session: Session) -> list[str]:
    """Ids of the files that a session has met, to be compared with the disk."""
    return [e.object for e in session.index.entries.values() if e.type == "file"]


def now_ms() -> int:
    """The time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000

"""Opens a session: its stored state, file source, facilities, guard and watch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from foredeck.config import Config
from foredeck.context.calls.recording import damage_report
from foredeck.context.state.facilities import Facilities, FacilityInputs, MakeFacilities
from foredeck.context.state.session import Beginning, Session, SessionFolder, open_session
from foredeck.engine.memory import begun_by
from foredeck.engine.opened import OpenedSession, settle_privacy
from foredeck.engine.switches import Switches
from foredeck.engine.watching import LooksBeforeCalls, NoWatch, Reconcile, SessionWatch
from foredeck.hosts.host import Host
from foredeck.hosts.pi import session_id_in, unreadable_lines
from foredeck.hosts.protocol import SessionOpenParams
from foredeck.notes import live_graph
from foredeck.sources.disk import open_source
from foredeck.sources.recorded import FileSource
from foredeck.store.store import Store
from foredeck.timeline.guard import PathLocks, ToolGuard
from foredeck.timeline.keeping import ChangeKeeper

MakeSource = Callable[[Store, str], FileSource]
"""Makes a session's file source for a folder."""


def configured_facilities(opening: FacilityInputs) -> Facilities:
    # Their modules load with the first session: an engine that waits for one starts without them.
    from foredeck.engine.facilities import make_facilities

    return make_facilities(opening)


@dataclass
class SessionOpener:
    """Opens sessions as configured; `_recorded` makes the source of a replay."""

    _config: Config
    _host: Host
    _recorded: MakeSource | None
    _make_facilities: MakeFacilities

    def __post_init__(self) -> None:
        self._locks = PathLocks(self._config.home)

    def open(
        self,
        store: Store,
        params: SessionOpenParams,
        reconcile: Reconcile,
        calls_at_opening: int | None = None,
    ) -> OpenedSession:
        """Loads a session, or begins it."""
        session_folder = SessionFolder(self._config, params.cwd)
        session = self._load(store, params, session_folder, calls_at_opening)
        if not session.chat.log.newest and (lost := unreadable_lines(params.file or "")):
            session.inbox.user_messages.append(damage_report(lost))
        settle_privacy(session, wanted=params.private)
        opening = FacilityInputs.at_opening(self._config, session, session_folder)
        facilities = self._make_facilities(opening)
        guard = self._guard(session, session_folder)
        watch = self._watch(session, session_folder, reconcile, guard)
        keeper = self._keeper(session, session_folder)
        is_replay = self._recorded is not None
        switches = None if is_replay else Switches.of(self._config, session_folder, facilities)
        return OpenedSession(*opening, facilities, watch, switches, guard, keeper)

    def _load(
        self,
        store: Store,
        params: SessionOpenParams,
        session_folder: SessionFolder,
        calls_at_opening: int | None,
    ) -> Session:
        source = (
            open_source(self._config, store, session_folder.filesystems)
            if self._recorded is None
            else self._recorded(store, params.cwd)
        )
        return open_session(
            store,
            source,
            Beginning(
                params.session,
                params.cwd,
                self._host.name,
                params.file,
                params.parent or session_id_in(params.parent_file or ""),
                params.started_by,
                None if self._recorded is not None else begun_by(self._config, params),
                params.private,
            ),
            calls_at_opening=calls_at_opening,
            open_graph=partial(live_graph, store, self._config.home),
            notify=partial(self._host.notify, "info"),
        )

    def _guard(self, session: Session, session_folder: SessionFolder) -> ToolGuard | None:
        if not session.info.is_live:
            return None
        return ToolGuard(
            session.objects,
            session.chat,
            session.inbox,
            session_folder.filesystems,
            self._locks,
            self._config.guard,
        )

    def _keeper(self, session: Session, session_folder: SessionFolder) -> ChangeKeeper | None:
        if not self._config.rewind or not session.info.is_live:
            return None
        return ChangeKeeper(
            session.chat,
            session_folder.filesystems,
            self._config.prepare_ms / 1000,
            idle=self._host.call_soon is not None,
        )

    def _watch(
        self,
        session: Session,
        session_folder: SessionFolder,
        reconcile: Reconcile,
        guard: ToolGuard | None,
    ) -> SessionWatch | NoWatch:
        if not self._config.sources.watch or not session.info.is_live:
            return NoWatch()
        if self._host.call_soon is None:
            return LooksBeforeCalls(session.objects, session.chat)
        return SessionWatch(
            session.objects,
            session.chat,
            session.inbox,
            session_folder.filesystems,
            self._host.call_soon,
            reconcile,
            self._host.notify,
            None if guard is None else guard.saw,
        )

"""The open session, with one boundary around all work on it, and its store."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from foredeck.config import Config
from foredeck.context.intake.file_changes import PATIENCE_S
from foredeck.engine.background import Background, BackgroundWorker
from foredeck.engine.opened import OpenedSession
from foredeck.engine.opening import SessionOpener
from foredeck.errors import OutOfSync, StoreDamaged, StoreError, ToolError, UnknownSession
from foredeck.hosts.protocol import SessionOpenParams
from foredeck.model.documents import session_object_id
from foredeck.store.at_work import AtWork
from foredeck.store.location import earlier_damage, inode_of
from foredeck.store.place import open_beside, open_store, store_file
from foredeck.store.protocol import Notify
from foredeck.store.store import Store

log = logging.getLogger(__name__)

REFUSALS = (OutOfSync, ToolError)
"""Raised before any change: memory still matches the store."""


FORGOTTEN = (
    "This session was erased with `foredeck forget` while it was open. foredeck begins it anew "
    "with what Pi still holds."
)


class RecoverableStore:
    """The configured store, or a `given` one, which is never replaced."""

    def __init__(self, config: Config, notify: Notify, given: Store | None = None) -> None:
        self._config = config
        self._notify = notify
        self._is_given = given is not None
        # Another engine may replace a damaged file first. The inode, taken before the file is
        # opened, says whether the file that is there now is still the damaged one.
        self._inode = inode_of(store_file(config))
        self.warnings: list[str] = []
        """Texts for the user about the opening."""
        self.current: Store = given or self._open()

    def _open(self) -> Store:
        try:
            store: Store = open_store(self._config, notify=self._notify)
            self._inode = inode_of(store_file(self._config))
            self.warnings += earlier_damage(store_file(self._config))
        except StoreDamaged as damage:
            store, text = self._start_fresh(damage)
            self.warnings.append(text)
        return store

    def replace(self, damage: StoreDamaged) -> None:
        """Replaces a damaged store by a fresh one. Raises `damage` if it cannot."""
        if self._is_given:
            raise damage
        # It is damaged: whether it closes or not changes nothing.
        with suppress(StoreError):
            self.current.close()
        self.current, text = self._start_fresh(damage)
        self._notify("error", text)

    def _start_fresh(self, damage: StoreDamaged) -> tuple[Store, str]:
        store, text = open_beside(self._config, damage, self._inode, notify=self._notify)
        self._inode = inode_of(store_file(self._config))
        return store, text


@dataclass(slots=True)
class CurrentSession:
    """Holds the open session; a failure drops it, and the next request reopens it from the
    store."""

    _opener: SessionOpener
    _store: RecoverableStore
    _background: Background
    _at_work: AtWork | None
    _params: SessionOpenParams | None = None
    _calls_at_opening: int | None = None
    opened: OpenedSession | None = None
    """None also while a forgotten session is open for the host."""

    def open(self, params: SessionOpenParams) -> OpenedSession:
        """Opens a session in place of the previous one. Idempotent."""
        # A host that asks again, after a timeout say, must not lose what is loaded.
        if self.opened is None or self.opened.session.info.id != params.session:
            self.close()
            self._params, self._calls_at_opening = params, params.calls
            self._say_open(params.session)
        return self.require(params.session)

    def require(self, id: str) -> OpenedSession:
        """The open session. Raises `UnknownSession` if the host has not opened it."""
        if self._params is None or self._params.session != id:
            raise UnknownSession(f"Session {id!r} is not open.")
        return self.opened or self._load(self._params)

    def _load(self, params: SessionOpenParams) -> OpenedSession:
        try:
            opened = self._open(params)
        except StoreDamaged as damage:
            self.recover(damage)
            opened = self._open(params)
        self._calls_at_opening = opened.session.info.calls_at_opening
        self.opened = opened
        self._background.attach(opened.session, opened.facilities.on(BackgroundWorker))
        # From here on a failure takes down what was started: jobs, guard and watch.
        with self.use(params.session):
            # Else it waits for the results of tools that run or ran meanwhile: what these change is
            # theirs.
            if params.running:
                opened.take_up(params.running)
            elif not opened.watch.always_asked:
                opened.reconcile()
            opened.begin()
            self.follow()
        return opened

    def _open(self, params: SessionOpenParams) -> OpenedSession:
        # Where the session is opened again, the calls since the host opened it are still those
        # of this host: only what its outcomes name has gone out.
        store, calls = self._store.current, self._calls_at_opening
        return self._opener.open(store, params, self.reconcile, calls)

    def begin_anew_if_forgotten(self) -> None:
        """Restarts a session that was erased meanwhile."""
        # Commands refuse to erase an open session, but other machines cannot see that it is open.
        if self.opened is None:
            return
        session = self.opened.session
        id, workspace = session_object_id(session.info.id), session.objects.workspace
        if id not in workspace.pending and workspace.store.head(id) is None:
            self.forget()
            self.require(session.info.id).session.inbox.user_messages.append(FORGOTTEN)

    @contextmanager
    def use(self, id: str) -> Iterator[OpenedSession]:
        """The open session for work that changes it; a failure drops it."""
        opened = self.require(id)
        try:
            yield opened
        except REFUSALS:
            raise
        except Exception:
            # What is in memory may be ahead of what was committed.
            self.forget()
            raise

    def reconcile(self, paths: Iterable[str] | None, patience_s: float = 0.0) -> None:
        """Reads files that may have changed; errors are only logged."""
        if self.opened is None:
            return
        try:
            with self.use(self.opened.session.info.id) as opened:
                opened.reconcile(paths, patience_s)
        except Exception:
            # No request waits for this: the session is forgotten, and the next one opens it again.
            log.exception("reconciling changed files failed")

    def catch_up(self, *, after_user: bool) -> None:
        """Looks at postponed files before assembly; after a user message, or if nothing is watched,
        at all in view."""
        if self.opened is not None:
            self.opened.watch.release()
        # Looking at what was released may have failed: then there is no session any more.
        if self.opened is None:
            return
        late = set(self.opened.session.inbox.being_written)
        if after_user or self.opened.watch.always_asked:
            # What the user saved a moment ago counts, and no event may have come of it yet.
            late.update(self.opened.watch.differing())
        if late:
            self.reconcile(sorted(late), PATIENCE_S if after_user else 0.0)

    def follow(self) -> None:
        """Watches files met since the last time."""
        if self.opened is not None:
            self.opened.watch.follow()

    def recover(self, damage: StoreDamaged) -> None:
        """Drops the session and continues with a fresh store. Raises `damage` if it cannot."""
        self.forget()
        self._store.replace(damage)
        # A fresh store counts calls from 1 again.
        self._calls_at_opening = None

    def forget(self) -> None:
        """Drops what is in memory; for the host the session stays open."""
        # First: a job that goes on would write into a session that is gone.
        self._background.detach()
        opened, self.opened = self.opened, None
        if opened is not None:
            if opened.guard is not None:
                opened.guard.forget()
            opened.watch.stop()

    def close(self, id: str | None = None) -> None:
        """Closes the session, or only session `id`."""
        if id is not None and (self._params is None or self._params.session != id):
            return
        if self.opened is not None:
            self.opened.close()
        self.forget()
        self._params = None
        self._say_open(None)

    def _say_open(self, session: str | None) -> None:
        if self._at_work is not None:
            self._at_work.on(session)

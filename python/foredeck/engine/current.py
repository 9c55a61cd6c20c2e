"""The session that is open, and the one boundary around all work on it; the store, and a fresh one
in place of a damaged one."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from foredeck.config import Config
from foredeck.context.intake.file_changes import PATIENCE_S
from foredeck.engine.background import Background
from foredeck.engine.memory import tidy_memory
from foredeck.engine.opened import OpenedSession
from foredeck.engine.opening import SessionOpener
from foredeck.engine.project_notes import take_in_notes
from foredeck.errors import OutOfSync, StoreDamaged, StoreError, ToolError, UnknownSession
from foredeck.hosts.protocol import SessionOpenParams
from foredeck.store.at_work import AtWork
from foredeck.store.kind import open_beside, open_store, store_file
from foredeck.store.location import earlier_damage, inode_of
from foredeck.store.protocol import Notify, Store

log = logging.getLogger(__name__)

REFUSALS = (OutOfSync, ToolError)
"""Raised before anything has changed: what is in memory is still what is stored."""


FORGOTTEN = (
    "This session was erased with `foredeck forget` while it was open. foredeck begins it anew "
    "with what Pi still holds."
)


class RecoverableStore:
    """The configured store, in `current`. `given` takes its place, but is never replaced."""

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
        """Go on with a fresh store, and tell the user. Raises `damage` where that is impossible."""
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


class CurrentSession:
    """Holds at most one session. When work on it fails it is forgotten, and opened again from the
    store at the next request."""

    def __init__(
        self,
        opener: SessionOpener,
        store: RecoverableStore,
        background: Background,
        at_work: AtWork | None,
    ) -> None:
        """`at_work`: shows commands which session is open; None for a replay, which belongs to no
        user."""
        self._opener = opener
        self._store = store
        self._background = background
        self._at_work = at_work
        self._params: SessionOpenParams | None = None
        self._calls_at_opening: int | None = None
        self.opened: OpenedSession | None = None
        """None also while the host believes a session open that has been forgotten."""

    def open(self, params: SessionOpenParams) -> OpenedSession:
        """Open a session; the one before is closed. Idempotent."""
        # A host that asks again, after a timeout say, must not lose what is loaded.
        if self.opened is None or self.opened.session.info.id != params.session:
            self.close()
            self._params, self._calls_at_opening = params, params.calls
            self._say_open(params.session)
        return self.require(params.session)

    def require(self, id: str) -> OpenedSession:
        """The open session. Raises `UnknownSession` where the host has not opened it."""
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
        self._background.attach(opened.session, opened.facilities.workers)
        # From here on a failure takes down what was started: jobs, guard and watch.
        with self.use(params.session):
            opened.reconcile()
            take_in_notes(opened)
            tidy_memory(opened)
            self.follow()
        return opened

    def _open(self, params: SessionOpenParams) -> OpenedSession:
        # Where the session is opened again, the calls since the host opened it are still those
        # of this host: only what its outcomes name has gone out.
        store, calls = self._store.current, self._calls_at_opening
        return self._opener.open(store, params, self.reconcile, calls)

    def begin_anew_if_forgotten(self) -> None:
        """Before a prompt is assembled: a session that was erased meanwhile begins anew, and its
        user reads of it."""
        # Commands refuse to erase an open session, but other machines cannot see that it is open.
        opened = self.opened
        if opened is not None and opened.session.objects.is_forgotten():
            self.forget()
            session = self.require(opened.session.info.id).session
            session.inbox.user_messages.append(FORGOTTEN)

    @contextmanager
    def use(self, id: str) -> Iterator[OpenedSession]:
        """The open session, for work that changes it; forgotten where that work fails."""
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
        """Read files that may have changed. An error is only logged."""
        if self.opened is None:
            return
        try:
            with self.use(self.opened.session.info.id) as opened:
                opened.reconcile(paths, patience_s)
        except Exception:
            # No request waits for this: the session is forgotten, and the next one opens it again.
            log.exception("reconciling changed files failed")

    def catch_up(self, *, after_user: bool) -> None:
        """Before a prompt is assembled: look at what was left for later, and, after a message of
        the user's, at all that the model sees."""
        if self.opened is not None:
            self.opened.watch.release()
        # Looking at what was released may have failed: then there is no session any more.
        if self.opened is None:
            return
        late = set(self.opened.session.inbox.being_written)
        if after_user:
            # What the user saved a moment ago counts, and no event may have come of it yet.
            late.update(self.opened.watch.differing())
        if late:
            self.reconcile(sorted(late), PATIENCE_S if after_user else 0.0)

    def follow(self) -> None:
        """Watch the files that the session has met since the last time."""
        if self.opened is not None:
            self.opened.watch.follow()

    def recover(self, damage: StoreDamaged) -> None:
        """Forget the session, and go on with a fresh store. Raises `damage` where that is
        not possible."""
        self.forget()
        self._store.replace(damage)
        # A fresh store counts calls from 1 again.
        self._calls_at_opening = None

    def forget(self) -> None:
        """Drop what is in memory; the host still takes the session for open."""
        # First: a job that goes on would write into a session that is gone.
        self._background.detach()
        opened, self.opened = self.opened, None
        if opened is not None:
            if opened.guard is not None:
                opened.guard.forget()
            opened.watch.stop()

    def close(self, id: str | None = None) -> None:
        """Close the session: all of it is in the store. `id`: only where it is this one."""
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

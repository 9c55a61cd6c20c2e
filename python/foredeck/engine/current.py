"""The session that is open, and the one boundary around all work on it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from foredeck.context.intake.file_changes import PATIENCE_S
from foredeck.engine.background.background import Background
from foredeck.engine.opened import OpenedSession
from foredeck.engine.opening import SessionOpener
from foredeck.engine.recovery import RecoverableStore
from foredeck.errors import OutOfSync, StoreDamaged, ToolError, UnknownSession
from foredeck.hosts.protocol import SessionOpenParams
from foredeck.store.at_work import AtWork

log = logging.getLogger(__name__)

REFUSALS = (OutOfSync, ToolError)
"""Raised before anything has changed: what is in memory is still what is stored."""


FORGOTTEN = (
    "This session was erased with `foredeck forget` while it was open. foredeck begins it anew "
    "with what Pi still holds."
)


class CurrentSession:
    """Holds at most one session. When work on it fails it is forgotten, and opened again from the
    store at the next request: what is in memory may be ahead of what was committed."""

    def __init__(
        self,
        opener: SessionOpener,
        store: RecoverableStore,
        background: Background,
        at_work: AtWork | None = None,
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
        with self.use(params.session):
            opened.reconcile()
            opened.take_in_notes()
            opened.tidy_memory()
            self.follow()
        return opened

    def _open(self, params: SessionOpenParams) -> OpenedSession:
        # Where the session is opened again, the calls since the host opened it are still those
        # of this host: only what its outcomes name has gone out.
        store, calls = self._store.current, self._calls_at_opening
        return self._opener.open(store, params, self.reconcile, calls)

    def begin_anew_if_forgotten(self) -> None:
        """Before a prompt is assembled: a session that was erased meanwhile (commands
        refuse to, but other machines cannot see that it is open) begins anew, with a word."""
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
            self.forget()
            raise

    def reconcile(self, paths: Iterable[str] | None, patience_s: float = 0.0) -> None:
        """Read files that may have changed. No request waits for it, so an error is only
        logged: the session is forgotten, and the next request opens it again."""
        if self.opened is None:
            return
        try:
            with self.use(self.opened.session.info.id) as opened:
                opened.reconcile(paths, patience_s)
        except Exception:
            log.exception("reconciling changed files failed")

    def catch_up(self, *, after_user: bool) -> None:
        """Before a prompt is assembled: look at what was left for later, and, after a message of
        the user's, at all that the model sees. What they saved a moment ago counts."""
        if self.opened is not None:
            self.opened.watch.release()
        # Looking at what was released may have failed: then there is no session any more.
        if self.opened is None:
            return
        late = set(self.opened.session.inbox.being_written)
        if after_user:
            late.update(self.opened.watch.differing())
        if late:
            self.reconcile(sorted(late), PATIENCE_S if after_user else 0.0)

    def end_tools(self) -> None:
        """A prompt is being assembled: no tool runs."""
        if self.opened is not None:
            self.opened.end_tools()

    def follow(self) -> None:
        """Watch the files that the session has met since the last time."""
        if self.opened is not None:
            self.opened.watch.follow()

    def settle_claim(self) -> None:
        """See `OpenedSession.settle_claim`."""
        if self.opened is not None:
            self.opened.settle_claim()

    def keep(self) -> None:
        """See `OpenedSession.keep`."""
        if self.opened is not None:
            self.opened.keep()

    def recover(self, damage: StoreDamaged) -> None:
        """Forget the session, and go on with a fresh store. Raises `damage` where that is
        not possible."""
        self.forget()
        self._store.replace(damage)
        # A fresh store counts calls from 1 again.
        self._calls_at_opening = None

    def forget(self) -> None:
        """Let go of what is in memory; the host still takes the session for open."""
        self._background.detach()
        opened, self.opened = self.opened, None
        if opened is not None:
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

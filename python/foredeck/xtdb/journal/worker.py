"""Bringing what the journal holds to XTDB, in order, beside the engine's own work.

One thread in each engine. Of all engines on one local copy the one that holds the lock delivers;
when it ends, however it ends, another takes over what is left.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.errors import Missing, StoreError, StoreUnavailable
from foredeck.model.kinds import kind_of
from foredeck.store.protocol import Batch, Notify, Token
from foredeck.store.sqlite.adapter import SqliteStore, open_sqlite
from foredeck.xtdb.journal.link import Link
from foredeck.xtdb.journal.tables import Journal, JournalBounds, JournalEntry

if TYPE_CHECKING:
    from foredeck.xtdb.database.adapter import XtdbStore

log = logging.getLogger(__name__)

_SETTLE, _LONGEST_SETTLE = 0.1, 5.0
"""Delivery waits until the engine has not used its store for so many seconds, and no longer than
the second figure: the agent waits for the engine, and two threads of Python share one processor."""
_MOST_HELD = 0.25
"""The share of what may wait for XTDB from which on delivery no longer waits for the engine."""
_BUSY_MS = 10_000
_POLL = 1.0
_HEALTH = 5.0
_PAGE = 20
_CHANGES = 2_000
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_TELL_AFTER = 2.0
"""Seconds without XTDB after which the user is told."""


class Worker:
    """Delivers, follows what others write, and keeps a node of ours running."""

    def __init__(
        self, file: Path, bounds: JournalBounds, link: Link, notify: Notify, busy_timeout_ms: int
    ) -> None:
        self._file = file
        self._bounds = bounds
        self._busy_timeout_ms = busy_timeout_ms
        self._link = link
        self._notify_user = notify
        self._changed = threading.Condition()
        self._work = False
        self._used_at = 0.0
        self._hurry = False
        self._stopping = False
        self._until = 0.0
        self._left = False
        self._away_since: float | None = None
        self._told = False
        self._followed = False
        self._lost_by: StoreError | None = None
        self._thread = threading.Thread(target=self._run, name="foredeck-journal", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """There is something to deliver."""
        if self._work:
            return  # A thread that is woken takes the processor from the one that works.
        with self._changed:
            self._work = True
            self._changed.notify_all()

    def used(self) -> None:
        """The engine is at work with its store."""
        self._used_at = time.monotonic()

    def wait_for_changes(self, seconds: float) -> bool:
        """Wait until what others wrote is known, once; whether it is."""
        with self._changed:
            self._changed.wait_for(lambda: self._followed or self.away, seconds)
            return self._followed

    @property
    def lost_by(self) -> StoreError | None:
        """Why XTDB does not answer at the moment."""
        return self._lost_by

    @property
    def away(self) -> bool:
        """Whether XTDB does not answer at the moment."""
        return self._away_since is not None

    def stop(self, seconds: float) -> None:
        """Deliver what can be within so many seconds, then end; the rest waits for the next.

        Where XTDB is away, or hangs, nobody waits for it.
        """
        deadline = time.monotonic() + seconds
        with self._changed:
            self._until = deadline
            self._stopping = True
            self._changed.notify_all()
        # One that sleeps ends at once, one that waits for an answer does not.
        self._thread.join(min(_FIRST_PAUSE, seconds))
        while self._thread.is_alive() and not self.away and time.monotonic() < deadline:
            self._thread.join(0.02)
        # It may still wait for an answer, or for a node: it starts none behind our back.
        self._left = True

    # The thread

    def _run(self) -> None:
        try:
            with _Copy(self._file, self._bounds, self._busy_timeout_ms) as copy:
                self._serve(copy)
        except Exception:
            log.exception("the journal's worker has failed; what waits is delivered later")
            self._notify("error", "foredeck no longer delivers to XTDB; see the engine's log.")

    def _serve(self, copy: _Copy) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                remote = self._link.connect(lambda: self._left)
            except StoreError as error:
                self._lost(error, copy)
            else:
                try:
                    self._check_kept(remote, copy)
                    self._follow(remote, copy)
                    self._back(copy)
                    pause = _FIRST_PAUSE
                    self._attend(remote, copy)
                    return
                except StoreError as error:
                    self._lost(error, copy)
                finally:
                    with suppress(Exception):
                        remote.close()
            if self._sleep(pause):
                return
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _attend(self, remote: XtdbStore, copy: _Copy) -> None:
        """Deliver and follow until this engine ends. Raises `StoreError` when XTDB is lost."""
        checked = followed = time.monotonic()
        while True:
            copy.try_lock()
            left = copy.locked and self._deliver(remote, copy)
            if self._stopping and not left:
                return
            if not left:
                self._wait()
            now = time.monotonic()
            if now - checked > _HEALTH:
                checked = now
                self._check_health(remote)
            if self._link.shared and not self._stopping and now - followed > _POLL * 0.9:
                followed = now
                self._follow(remote, copy)

    def _wait(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._work or self._stopping, _POLL)
            until = time.monotonic() + _LONGEST_SETTLE
            while self._work and not self._stopping and (rest := self._rest()) > 0:
                self._hurry = time.monotonic() > until
                if self._hurry:
                    break
                self._changed.wait_for(lambda: self._stopping, rest)
            self._work = False

    def _rest(self) -> float:
        """For how many seconds the engine is left alone yet; 0 or less where it is at rest."""
        return self._used_at + _SETTLE - time.monotonic()

    def _sleep(self, seconds: float) -> bool:
        """Wait; whether this engine is ending."""
        with self._changed:
            return self._changed.wait_for(lambda: self._stopping, seconds)

    # Delivering

    def _deliver(self, remote: XtdbStore, copy: _Copy) -> bool:
        """Deliver a page of what waits; whether there may be more. It ends when the engine sets to
        work again, unless it has waited for long already, or much waits."""
        entries = copy.journal.waiting(_PAGE)
        hurry, self._hurry = self._hurry or self._is_much(entries, copy), False
        done: list[int] = []
        try:
            for entry in entries:
                if not (hurry or self._stopping) and self._rest() > 0:
                    self._work = True
                    return False
                if self._stopping and time.monotonic() > self._until:
                    return False
                try:
                    remote.commit(copy.load(entry), origin=entry.origin)
                except (StoreError, ValueError) as error:
                    if _may_pass(error):
                        raise
                    self._refused(entry, error, copy)
                else:
                    done.append(entry.number)
        finally:
            # In one go: what is delivered twice because this was not reached does no harm.
            copy.journal.delivered(done)
        return len(entries) == _PAGE

    def _is_much(self, entries: list[JournalEntry], copy: _Copy) -> bool:
        if len(entries) < _PAGE:
            return False
        return copy.journal.newest() - entries[0].number > self._bounds.entries * _MOST_HELD

    def _refused(self, entry: JournalEntry, error: Exception, copy: _Copy) -> None:
        log.error("transaction %s was refused: %s", entry.origin.token, error)
        copy.journal.refuse(entry.number, str(error))
        self._notify(
            "error",
            f"XTDB has refused a transaction of foredeck's: {error}. It stays in the local copy "
            "and is tried again when Pi is started next.",
        )

    # What others have written

    def _follow(self, remote: XtdbStore, copy: _Copy) -> None:
        """Learn of what was written since the last time."""
        journal = copy.journal
        try:
            position = journal.position
            if position is None or remote.latest() != position:
                self._read_changes(remote, journal, position)
        except Missing:
            copy.try_lock()
            if copy.locked:
                self._resend(remote, copy)
                self._read_changes(remote, journal, None)
        with self._changed:
            self._followed = True
            self._changed.notify_all()

    def _read_changes(self, remote: XtdbStore, journal: Journal, position: Token | None) -> None:
        while changes := remote.changes_since(position, limit=_CHANGES):
            position = changes[-1].token
            journal.follow(changes, position)
            if self._stopping:
                return
        if not journal.has_followed or position != journal.position:
            journal.follow((), position)

    def _check_kept(self, remote: XtdbStore, copy: _Copy) -> None:
        """Whether XTDB still has what was delivered last: it may have been in memory."""
        copy.try_lock()
        last = copy.journal.last_delivered() if copy.locked else None
        if last is not None and not remote.transactions([last]):
            self._resend(remote, copy)

    def _resend(self, remote: XtdbStore, copy: _Copy) -> None:
        count = 0
        for tokens in copy.journal.all_delivered():
            known = {origin.token for origin in remote.transactions(tokens)}
            count += copy.journal.again([token for token in tokens if token not in known])
        log.warning("XTDB has lost transactions that it had: %d are delivered again", count)

    # How XTDB does

    def _check_health(self, remote: XtdbStore) -> None:
        if remote.status().get("ingesterFailed?"):
            self._notify("warning", "The XTDB node could not index its log and is started again.")
            self._link.restart("the XTDB node had stopped indexing")

    def _lost(self, error: StoreError, copy: _Copy) -> None:
        now = time.monotonic()
        self._lost_by = error
        if self._away_since is None:
            log.warning("XTDB is away: %s", error)
            with self._changed:
                self._away_since = now
                self._changed.notify_all()
        if not self._told and now - self._away_since >= _TELL_AFTER:
            self._told = True
            self._notify(
                "warning",
                f"{error}. foredeck goes on with its local copy; {copy.waiting()} transactions "
                "wait for XTDB.",
            )

    def _back(self, copy: _Copy) -> None:
        told, self._told, self._away_since, self._lost_by = self._told, False, None, None
        if told:
            self._notify(
                "info", f"XTDB answers again; {copy.waiting()} transactions are delivered."
            )

    def _notify(self, level: str, text: str) -> None:
        if not self._stopping:
            self._notify_user(level, text)


def _may_pass(error: Exception) -> bool:
    """Whether a delivery may succeed later: nobody answers, or the server's disk is full."""
    from foredeck.xtdb.database.client import Refused

    return isinstance(error, StoreUnavailable) or (
        isinstance(error, Refused) and error.status >= 500
    )


class _Copy:
    """The local copy as the worker's thread sees it, and the lock of whoever delivers."""

    def __init__(self, file: Path, bounds: JournalBounds, busy_timeout_ms: int) -> None:
        self.locked = False
        # Nobody waits for this thread, so it has more patience than the engine.
        patience_ms = max(_BUSY_MS, busy_timeout_ms)
        self._store: SqliteStore = open_sqlite(file, busy_timeout_ms=patience_ms)
        self.journal = Journal(file, bounds, patience_ms)
        self._lock = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)

    def __enter__(self) -> _Copy:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)
        self.journal.close()
        self._store.close()

    def try_lock(self) -> None:
        """Become the one that delivers, where nobody is; what was refused is tried again then."""
        if self.locked:
            return
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        self.locked = True
        self.journal.retry_refused()

    def waiting(self) -> int:
        """How many transactions wait, as far as that can be told."""
        try:
            return self.journal.figures().entries
        except StoreError:
            return 0

    def load(self, entry: JournalEntry) -> Batch:
        """All that a transaction brought. Raises `Missing` or `Corrupt` for a damaged copy."""
        puts = []
        for id, type in entry.documents:
            document = self._store.get(id, kind_of(type), entry.origin.token)
            assert document is not None
            puts.append(document)
        blobs = self._store.blobs(entry.blobs)
        if absent := [digest for digest in entry.blobs if digest not in blobs]:
            raise Missing(f"no blob {absent[0]} in the local copy")
        return Batch(puts=puts, blobs=blobs)

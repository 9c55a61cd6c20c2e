"""Delivers the journal to XTDB, and learns what others wrote, in a thread of each engine.

Of all engines on one copy, the one with the lock delivers.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.errors import Missing, StoreError, StoreUnavailable
from foredeck.model.kinds import kind_of
from foredeck.regular_files import open_regular
from foredeck.store.location import is_held
from foredeck.store.protocol import Batch, Notify, Token
from foredeck.store.store import Store, open_sqlite
from foredeck_xtdb.journal import (
    DeliveryQueue,
    Journal,
    JournalBounds,
    JournalEntry,
    MissingVersions,
)
from foredeck_xtdb.link import Link

if TYPE_CHECKING:
    from foredeck_xtdb.database.adapter import Database

# How long this thread waits for a busy file: longer than an engine, since no request waits for it.
_BUSY_MS = 10_000

# Half of what the store allows: so it is this thread that copies the log into the file, and no
# commit of the engine has to.
_LOG_PAGES = 2000
_CHANGES = 2_000
"""How many changes one request reads."""

# Delivery waits until the engine has not used its store for the first figure, and no longer than
# the second: the agent waits for the engine, and two threads of Python share one processor.
_IDLE_S, _LONGEST_WAIT_S = 0.1, 5.0
_MOST_HELD = 0.25
"""Share of the journal's bounds from which on delivery does not wait for the engine."""
_POLL_S = 1.0
_HEALTH_S = 5.0
_PAGE = 20
_DELIVERY_LOOK_S = 0.01
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_NOTIFY_AFTER_S = 2.0
"""Seconds without an answer before the user hears of it."""

log = logging.getLogger(__name__)


class DeliveringCopy:
    """The thread's own connection; `locked`: this engine delivers."""

    def __init__(self, file: Path, bounds: JournalBounds, busy_timeout_ms: int) -> None:
        self.locked = False
        busy_ms = max(_BUSY_MS, busy_timeout_ms)
        self._store: Store = open_sqlite(file, busy_timeout_ms=busy_ms)
        self.journal = Journal(self._store, bounds)
        self.journal.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        # A lock of the system's ends with its process, however that ends: another engine takes
        # over.
        self._lock = open_regular(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT)

    def __enter__(self) -> DeliveringCopy:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)
        self._store.close()

    def try_lock(self) -> None:
        """Becomes the engine that delivers, if there is none."""
        if not self.locked and not is_held(self._lock):
            self.locked = True
            self.journal.queue.release_quarantined()

    def waiting(self) -> int:
        try:
            return self.journal.queue.backlog().entries
        except StoreError:
            return 0

    def load(self, entry: JournalEntry) -> Batch:
        """All of a transaction. Raises `Missing` or `Corrupt` for a damaged copy."""
        puts = []
        for id, type in entry.documents:
            document = self._store.get(id, kind_of(type), entry.origin.token)
            assert document is not None
            puts.append(document)
        blobs = self._store.blobs(entry.blobs)
        for digest in entry.blobs:
            # What was pruned since is not delivered again.
            if digest not in blobs and not self._store.is_pruned(digest):
                raise Missing(f"no blob {digest} in the local copy")
        return Batch(puts=puts, blobs=blobs)


def follow(remote: Database, copy: DeliveringCopy, is_stopping: Callable[[], bool]) -> None:
    """Records what was written to XTDB meanwhile."""
    missing = copy.journal.missing
    try:
        position = missing.position
        if position is None or remote.latest() != position:
            _read_changes(remote, missing, position, is_stopping)
    except Missing:
        # XTDB no longer knows the position: it is a node that keeps everything in memory and was
        # started again, or an older backup.
        copy.try_lock()
        if copy.locked:
            _deliver_lost_again(remote, copy)
            _read_changes(remote, missing, None, is_stopping)


def _read_changes(
    remote: Database,
    missing: MissingVersions,
    position: Token | None,
    is_stopping: Callable[[], bool],
) -> None:
    while changes := remote.changes_since(position, limit=_CHANGES):
        position = changes[-1].token
        missing.follow(changes, position)
        if is_stopping():
            return
    if not missing.has_followed or position != missing.position:
        missing.follow((), position)


def check_kept(remote: Database, copy: DeliveringCopy) -> None:
    """Delivers again what XTDB has lost."""
    copy.try_lock()
    last = copy.journal.queue.last_delivered() if copy.locked else None
    if last is not None and not remote.transactions([last]):
        _deliver_lost_again(remote, copy)


def _deliver_lost_again(remote: Database, copy: DeliveringCopy) -> None:
    queue = copy.journal.queue
    count = 0
    for tokens in queue.pages_of_delivered():
        known = {origin.token for origin in remote.transactions(tokens)}
        count += queue.deliver_again([token for token in tokens if token not in known])
    log.warning("XTDB has lost transactions that it had: %d are delivered again", count)


class Worker:
    """Delivers, follows others, and keeps foredeck's own node running."""

    def __init__(
        self, file: Path, bounds: JournalBounds, link: Link, notify: Notify, busy_timeout_ms: int
    ) -> None:
        self._file = file
        self._bounds = bounds
        self._busy_timeout_ms = busy_timeout_ms
        self._link = link
        self._notify_user = notify
        self._changed = threading.Condition()
        self._has_work = False
        self._last_use = 0.0
        self._is_overdue = False
        self._stopping = False
        self._stop_deadline = 0.0
        self._is_abandoned = False
        self._away_since: float | None = None
        self._has_notified = False
        self._has_followed = False
        self._outage: StoreError | None = None
        self._thread = threading.Thread(target=self._run, name="foredeck-journal", daemon=True)

    # For the engine's thread

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """There is something to deliver."""
        # A thread that is woken takes the processor from the one that works.
        if self._has_work:
            return
        with self._changed:
            self._has_work = True
            self._changed.notify_all()

    def note_use(self) -> None:
        """The engine is using its store: delivery waits."""
        self._last_use = time.monotonic()

    def wait_for_changes(self, seconds: float) -> bool:
        """Waits until others' writes were read once; returns whether they were."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_followed or self.away, seconds)
            return self._has_followed

    def wait_for_delivery(self, queue: DeliveryQueue, seconds: float) -> bool:
        """Waits until XTDB has all earlier commits; returns whether it has."""
        deadline = time.monotonic() + seconds
        newest = queue.newest()
        self.wake()
        while queue.waiting_up_to(newest):
            if self.away or time.monotonic() > deadline:
                return False
            time.sleep(_DELIVERY_LOOK_S)
        return not self.away

    @property
    def outage(self) -> StoreError | None:
        return self._outage

    @property
    def away(self) -> bool:
        return self._away_since is not None

    def stop(self, seconds: float) -> None:
        """Delivers what it can in this time, then ends."""
        deadline = time.monotonic() + seconds
        with self._changed:
            self._stop_deadline = deadline
            self._stopping = True
            self._changed.notify_all()
        # A thread that sleeps ends at once, one that waits for an answer does not.
        self._thread.join(min(_FIRST_PAUSE_S, seconds))
        while self._thread.is_alive() and not self.away and time.monotonic() < deadline:
            self._thread.join(0.02)
        # It may still wait for an answer, or for a node: it must start none after this.
        self._is_abandoned = True

    # The thread

    def _run(self) -> None:
        try:
            with DeliveringCopy(self._file, self._bounds, self._busy_timeout_ms) as copy:
                self._serve(copy)
        except Exception:
            log.exception("the journal's worker has failed; what waits is delivered later")
            self._notify("error", "foredeck no longer delivers to XTDB; see the engine's log.")

    def _serve(self, copy: DeliveringCopy) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            try:
                remote = self._link.connect(lambda: self._is_abandoned)
            except StoreError as error:
                self._on_lost(error, copy)
            else:
                try:
                    # Before anything is delivered: what XTDB has lost comes before what is new.
                    check_kept(remote, copy)
                    self._follow(remote, copy)
                    self._on_answered(copy)
                    pause = _FIRST_PAUSE_S
                    self._attend(remote, copy)
                    return
                except StoreError as error:
                    self._on_lost(error, copy)
                finally:
                    with suppress(Exception):
                        remote.close()
            if self._sleep(pause):
                return
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    def _attend(self, remote: Database, copy: DeliveringCopy) -> None:
        """Delivers and follows until this engine ends. Raises `StoreError` when XTDB is lost."""
        checked = followed = time.monotonic()
        while True:
            # Each time: the engine that has delivered may have ended meanwhile, however it did.
            copy.try_lock()
            has_more = copy.locked and self._deliver(remote, copy)
            if self._stopping and not has_more:
                return
            if not has_more:
                self._wait_for_work()
            now = time.monotonic()
            if now - checked > _HEALTH_S:
                checked = now
                self._check_health(remote)
            if self._link.shared and not self._stopping and now - followed > _POLL_S * 0.9:
                followed = now
                self._follow(remote, copy)

    def _wait_for_work(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._has_work or self._stopping, _POLL_S)
            overdue_at = time.monotonic() + _LONGEST_WAIT_S
            while self._has_work and not self._stopping and (rest := self._until_idle()) > 0:
                self._is_overdue = time.monotonic() > overdue_at
                if self._is_overdue:
                    break
                self._changed.wait_for(lambda: self._stopping, rest)
            self._has_work = False

    def _until_idle(self) -> float:
        return self._last_use + _IDLE_S - time.monotonic()

    def _sleep(self, seconds: float) -> bool:
        """Wait; whether this engine is ending."""
        with self._changed:
            return self._changed.wait_for(lambda: self._stopping, seconds)

    def _follow(self, remote: Database, copy: DeliveringCopy) -> None:
        follow(remote, copy, lambda: self._stopping)
        with self._changed:
            self._has_followed = True
            self._changed.notify_all()

    # Delivering

    def _deliver(self, remote: Database, copy: DeliveringCopy) -> bool:
        """Delivers a page of what waits, unless the engine needs its store; returns whether there
        may be more."""
        queue = copy.journal.queue
        entries = queue.oldest(_PAGE)
        now_or_never = self._is_overdue or self._is_much(entries, copy)
        self._is_overdue = False
        delivered: list[int] = []
        try:
            for entry in entries:
                if not (now_or_never or self._stopping) and self._until_idle() > 0:
                    self._has_work = True
                    return False
                if self._stopping and time.monotonic() > self._stop_deadline:
                    return False
                try:
                    remote.commit(copy.load(entry), origin=entry.origin)
                except (StoreError, ValueError) as error:
                    if _may_pass(error):
                        raise
                    self._quarantine(entry, error, copy)
                else:
                    delivered.append(entry.number)
        finally:
            # All in one transaction, after the fact: a kill before it delivers some of them twice,
            # and XTDB keeps one record for each token.
            queue.mark_delivered(delivered)
        return len(entries) == _PAGE

    def _is_much(self, entries: list[JournalEntry], copy: DeliveringCopy) -> bool:
        if len(entries) < _PAGE:
            return False
        waiting = copy.journal.queue.newest() - entries[0].number
        return waiting > self._bounds.entries * _MOST_HELD

    def _quarantine(self, entry: JournalEntry, error: Exception, copy: DeliveringCopy) -> None:
        log.error("transaction %s was refused: %s", entry.origin.token, error)
        copy.journal.queue.quarantine(entry.number, str(error))
        self._notify(
            "error",
            f"XTDB has refused a transaction of foredeck's: {error}. It is quarantined in the "
            "local copy and is tried again when Pi is started next.",
        )

    # Whether XTDB answers

    def _check_health(self, remote: Database) -> None:
        if remote.client.status().get("ingesterFailed?"):
            self._notify("warning", "The XTDB node could not index its log and is started again.")
            self._link.restart("the XTDB node had stopped indexing")

    def _on_lost(self, error: StoreError, copy: DeliveringCopy) -> None:
        now = time.monotonic()
        self._outage = error
        if self._away_since is None:
            log.warning("XTDB is away: %s", error)
            with self._changed:
                self._away_since = now
                self._changed.notify_all()
        if not self._has_notified and now - self._away_since >= _NOTIFY_AFTER_S:
            self._has_notified = True
            self._notify(
                "warning",
                f"{error}. foredeck goes on with its local copy; {copy.waiting()} transactions "
                "wait for XTDB.",
            )

    def _on_answered(self, copy: DeliveringCopy) -> None:
        had_notified, self._has_notified = self._has_notified, False
        self._away_since, self._outage = None, None
        if had_notified:
            waiting = copy.waiting()
            self._notify("info", f"XTDB answers again; {waiting} transactions are delivered.")

    def _notify(self, level: str, text: str) -> None:
        if not self._stopping:
            self._notify_user(level, text)


def _may_pass(error: Exception) -> bool:
    # The client loads with the first contact.
    from foredeck_xtdb.database.client import Refused

    return isinstance(error, StoreUnavailable) or (
        isinstance(error, Refused) and error.status >= 500
    )

"""Bringing to XTDB, now, what waits for it in the local copy, and comparing the two."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.config import Config
from foredeck.errors import StoreUnavailable
from foredeck.store.copying import compare, count_of
from foredeck.store.kind import DeliveredCopy
from foredeck.store.sqlite.adapter import open_sqlite
from foredeck.xtdb.journal.journal import Journal, read_backlog
from foredeck.xtdb.journal.queue import Backlog, DeliveryQueue
from foredeck.xtdb.opening import copy_file, open_copy, open_database

if TYPE_CHECKING:
    from foredeck.xtdb.journal.store import JournaledStore

Advance = Callable[[int], object]
"""Called with the number of transactions that were delivered since the last time."""

_STUCK_SECONDS, _AWAY_SECONDS = 60.0, 10.0
"""How long to wait without any delivery, while XTDB answers and while it does not."""
_POLL = 0.05
_BUSY_MS = 30_000


def waiting(config: Config) -> int:
    """How many transactions wait in the local copy, those that XTDB has refused among them."""
    backlog = read_backlog(copy_file(config))
    return backlog.entries + backlog.quarantined


def follow_anew(copies: Iterable[Path]) -> None:
    """Let local copies read all of XTDB's changes again, since others than their engines wrote
    there directly."""
    for file in copies:
        if file.is_file():
            with closing(Journal(file, busy_timeout_ms=_BUSY_MS)) as journal:
                journal.missing.forget_position()


def deliver(config: Config, advance: Advance = lambda _count: None) -> Backlog:
    """Bring all that waits at this moment to XTDB, and try again what it has refused before.

    Starts foredeck's own node if need be; where an engine is at work on the same copy, that one
    delivers. Returns what is left then. Raises `StoreUnavailable`, with the number that
    still waits and the reason, where XTDB does not take it.
    """
    if not waiting(config):
        return read_backlog(copy_file(config))
    with closing(Journal(copy_file(config), busy_timeout_ms=_BUSY_MS)) as journal:
        journal.queue.release_quarantined()
        with closing(open_copy(config)) as store:
            _await(store, journal.queue, advance)
        return journal.queue.backlog()


def _await(store: JournaledStore, queue: DeliveryQueue, advance: Advance) -> None:
    goal = queue.newest()
    before, since = queue.waiting_up_to(goal), time.monotonic()
    while left := queue.waiting_up_to(goal):
        if left < before:
            since = time.monotonic()
        advance(before - left)
        before = left
        away = store.away_because
        if time.monotonic() - since > (_AWAY_SECONDS if away else _STUCK_SECONDS):
            raise StoreUnavailable(
                f"{left} transactions wait in the local copy and XTDB does not take them"
                f"{away and f' ({away})'}: `foredeck xtdb status` shows why, and "
                "`foredeck xtdb sync` tries again"
            )
        time.sleep(_POLL)
    advance(before)


def deliver_and_compare(config: Config) -> DeliveredCopy:
    """Deliver, then read everything from XTDB and from the local copy, and compare.

    For a store that no other process writes to. Raises `StoreUnavailable`, `Corrupt`.
    """

    left = deliver(config)
    with (
        closing(open_sqlite(copy_file(config), busy_timeout_ms=_BUSY_MS)) as copy,
        closing(open_database(config)) as database,
    ):
        found = compare(database, copy)
        extra = count_of(database) - count_of(copy)
    held = found.original
    return DeliveredCopy(
        left.quarantined,
        left.reason,
        None if found.equal else found.differs or "a count",
        extra,
        f"XTDB holds {held.transactions} transactions: {held.objects} objects in "
        f"{held.versions} versions and {held.blobs} blobs",
    )

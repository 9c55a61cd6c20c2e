"""Bringing to XTDB, now, what waits for it in the local copy, and comparing the two. Commands do so
before they read XTDB.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.cli.output import Progress
from foredeck.config import Config
from foredeck.errors import StoreUnavailable
from foredeck.store.copying import compare, count_of
from foredeck.store.kind import DeliveredCopy
from foredeck.store.sqlite.adapter import open_sqlite
from foredeck.xtdb.journal.journal import Journal, read_backlog
from foredeck.xtdb.journal.queue import Backlog, DeliveryQueue
from foredeck.xtdb.node.folder import NodeInfo
from foredeck.xtdb.node.process import await_settled, own_node_folder
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


def settled_node(config: Config) -> NodeInfo | None:
    """The node of the state folder, None where none runs. It waits, and says so, for one that is
    being started or stopped. Raises `StoreUnavailable` where that does not end."""
    return await_settled(own_node_folder(config.home), _say_that_it_waits)


def _say_that_it_waits() -> None:
    print("Waiting for the XTDB node, which is being started or stopped.", file=sys.stderr)


def deliver_first(config: Config) -> tuple[int, Backlog]:
    """Deliver, with progress: how many transactions, and what is left.

    Raises `StoreUnavailable` where XTDB does not take them.
    """
    if config.xtdb.url is None:
        settled_node(config)
    count = waiting(config)
    with Progress("delivering what waits for XTDB, transaction", total=count) as progress:
        left = deliver(config, progress.advance)
    return count, left

"""Learning what others wrote to XTDB, and what XTDB has lost."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from foredeck.errors import Missing
from foredeck.store.protocol import Token
from foredeck.xtdb.journal.delivering_copy import DeliveringCopy
from foredeck.xtdb.journal.missing import MissingVersions

if TYPE_CHECKING:
    from foredeck.xtdb.database.adapter import XtdbStore

log = logging.getLogger(__name__)

_CHANGES = 2_000
"""How many changes one request reads."""


def follow(remote: XtdbStore, copy: DeliveringCopy, is_stopping: Callable[[], bool]) -> None:
    """Record what was written to XTDB since the last time."""
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
    remote: XtdbStore,
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


def check_kept(remote: XtdbStore, copy: DeliveringCopy) -> None:
    """Deliver again what XTDB has lost, if it no longer has what was delivered last."""
    copy.try_lock()
    last = copy.journal.queue.last_delivered() if copy.locked else None
    if last is not None and not remote.transactions([last]):
        _deliver_lost_again(remote, copy)


def _deliver_lost_again(remote: XtdbStore, copy: DeliveringCopy) -> None:
    queue = copy.journal.queue
    count = 0
    for tokens in queue.pages_of_delivered():
        known = {origin.token for origin in remote.transactions(tokens)}
        count += queue.deliver_again([token for token in tokens if token not in known])
    log.warning("XTDB has lost transactions that it had: %d are delivered again", count)

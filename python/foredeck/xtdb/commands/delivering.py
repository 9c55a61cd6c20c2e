"""Delivering what waits for XTDB before a command reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foredeck.cli.progress import Progress

if TYPE_CHECKING:
    from foredeck.config import Config
    from foredeck.xtdb.journal.queue import Backlog


def deliver_first(config: Config) -> tuple[int, Backlog]:
    """Deliver, with progress: how many transactions, and what is left.

    Raises `StoreUnavailable` where XTDB does not take them.
    """
    from foredeck.xtdb.delivery import deliver, waiting

    count = waiting(config)
    with Progress("delivering what waits for XTDB, transaction", total=count) as progress:
        left = deliver(config, progress.advance)
    return count, left

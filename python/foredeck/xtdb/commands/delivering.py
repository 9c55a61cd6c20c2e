"""What a command does before it reads XTDB: wait for the node, deliver what waits for it."""

from __future__ import annotations

import sys

from foredeck.cli.progress import Progress
from foredeck.config import Config
from foredeck.xtdb.delivery import deliver, waiting
from foredeck.xtdb.journal.queue import Backlog
from foredeck.xtdb.node.folder import NodeInfo
from foredeck.xtdb.node.process import await_settled
from foredeck.xtdb.node.supervise import own_node_folder


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

"""Opening the store on foredeck's own node, which is started when it is needed or has ended."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.errors import StoreUnavailable
from foredeck.xtdb.node.folder import NodeFolder
from foredeck.xtdb.node.process import IsCancelled, never, start
from foredeck.xtdb.node.runtime import find_runtime

if TYPE_CHECKING:
    from foredeck.xtdb.database.adapter import XtdbStore

MOST_STARTS = 5
"""How often a node that keeps ending is started again within `WINDOW_SECONDS`."""
WINDOW_SECONDS = 60.0
_FIRST_PAUSE = 0.1


def own_node_folder(home: Path) -> NodeFolder:
    """The node's folder in a state folder."""
    return NodeFolder(home / "xtdb")


def open_own_node(
    home: Path,
    *,
    topology: str = "rocksdb",
    namespace: str = "foredeck",
    timeout_ms: int = 10_000,
) -> XtdbStore:
    """Open the store on the node in the state folder `home`, which is started if need be.

    Raises `StoreUnavailable` where it is not installed or does not start.
    """
    # The client loads with the first contact.
    from foredeck.xtdb.database.adapter import open_xtdb

    supervisor = Supervisor(home, topology)
    return open_xtdb(
        supervisor.ensure(),
        token=supervisor.folder.token(),
        namespace=namespace,
        timeout_ms=timeout_ms,
        revive=supervisor.revive,
    )


class Supervisor:
    """Keeps the node of one state folder running while a store uses it."""

    def __init__(self, home: Path, topology: str) -> None:
        self.folder = own_node_folder(home)
        self._home = home
        self._topology = topology
        self._starts: deque[float] = deque()

    def ensure(self, is_cancelled: IsCancelled = never) -> str:
        """The address of the node, which runs when this returns; once it `is_cancelled` none is
        started, and `StoreUnavailable` is raised."""
        runtime = find_runtime(self._home)
        node, _, _ = start(self.folder, runtime, topology=self._topology, is_cancelled=is_cancelled)
        return node.url

    def revive(self, is_cancelled: IsCancelled = never) -> str:
        """As `ensure`, for a node that does not answer: with a pause that doubles each time. Raises
        `StoreUnavailable` for a node that keeps ending."""
        now = time.monotonic()
        while self._starts and now - self._starts[0] > WINDOW_SECONDS:
            self._starts.popleft()
        if len(self._starts) >= MOST_STARTS:
            raise StoreUnavailable(
                f"the XTDB node has ended {MOST_STARTS} times in {WINDOW_SECONDS:.0f} s; its log "
                f"says why: {self.folder.log_file}"
            )
        if self._starts:
            time.sleep(_FIRST_PAUSE * 2 ** len(self._starts))
        self._starts.append(now)
        return self.ensure(is_cancelled)

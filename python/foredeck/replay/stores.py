"""The private stores that recorded sessions are replayed on."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from foredeck.config import Config, load_config
from foredeck.store.protocol import Store
from foredeck.stores import open_database, open_store

Settings = Callable[[int], tuple[str, ...]]
"""The configuration, as `KEY=VALUE`, of the store of the n-th session."""


@contextmanager
def replay_stores(store: str) -> Iterator[Settings]:
    """Stores of a kind, `sqlite` or `xtdb`, each new and empty.

    XTDB is one node in memory for all of them, which ends with the block, or with this process.
    Raises `StoreUnavailable` where it is not installed.
    """
    if store == "sqlite":
        yield lambda _number: ()
        return
    from foredeck.xtdb.node.process import private_node
    from foredeck.xtdb.node.runtime import find_runtime

    # Only where the node is installed is taken from the user's own configuration.
    installed = load_config(environ=os.environ).config.home
    with (
        tempfile.TemporaryDirectory(prefix="foredeck-replay-xtdb-") as root,
        private_node(Path(root) / "node", find_runtime(installed)) as node,
    ):
        running = node.running()
        assert running is not None
        shared = (
            "store=xtdb",
            f"xtdb.url={running.url}",
            f"xtdb.token_file={node.token_file}",
            "xtdb.timeout_ms=60000",
        )
        yield lambda number: (*shared, f"xtdb.namespace=session-{number}")


def replay_store(config: Config) -> Store:
    """The store of one replayed session: XTDB itself, without the local copy in front of it, so
    that a replay shows what XTDB gives back."""
    return open_database(config) if config.store == "xtdb" else open_store(config)

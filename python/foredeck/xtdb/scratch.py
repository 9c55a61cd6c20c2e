"""Empty stores in XTDB for a run that keeps nothing, such as a replay."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foredeck.config import load_config
from foredeck.store.kind import Settings
from foredeck.xtdb.node.process import private_node
from foredeck.xtdb.node.runtime import find_runtime


@contextmanager
def stores_in_memory() -> Iterator[Settings]:
    """One node in memory, with a namespace for each store; it ends with the block, or with this
    process. Raises `StoreUnavailable` where no node is installed."""
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

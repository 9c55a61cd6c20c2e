"""State folders for the bench: on SQLite, or an XTDB node of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foredeck.config import Config, load_config
from foredeck.store.kind import open_store, store_kind
from foredeck.store.protocol import Store
from foredeck_bench.crash.checks import Tally

NODE_TIMEOUT_MS = 60_000


def settings(store: str) -> dict[str, str]:
    """Environment variables that choose this store, `sqlite` or `xtdb`."""
    if store == "sqlite":
        return {}
    return {
        "FOREDECK_TEST_CONSTANTS": "1",
        "FOREDECK_STORE": "xtdb",
        "FOREDECK_XTDB__TIMEOUT_MS": str(NODE_TIMEOUT_MS),
    }


@contextmanager
def prepared(home: Path, store: str, installed: Path | None = None) -> Iterator[None]:
    """Prepares `home`; its XTDB node runs until the block ends. Raises `StoreUnavailable`."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if store == "sqlite":
        yield
        return
    from foredeck_xtdb.node import own_node_folder, start, stop
    from foredeck_xtdb.runtime import find_runtime, runtime_folder

    runtime = find_runtime(installed or load_config(environ=os.environ).config.home)
    link = runtime_folder(home)
    link.parent.mkdir(mode=0o700, exist_ok=True)
    link.symlink_to(runtime.folder, target_is_directory=True)
    try:
        start(own_node_folder(home), runtime)
        yield
    finally:
        stop(own_node_folder(home))


def _config(home: Path, store: str) -> Config:
    flags = [f"home={home}", f"store={store}"]
    flags += [f"xtdb.timeout_ms={NODE_TIMEOUT_MS}"] if store == "xtdb" else []
    return load_config(flags=flags, environ={}, user_file=Path(os.devnull), constants=True).config


@contextmanager
def opened(home: Path, store: str) -> Iterator[Store]:
    """The store in `home`."""
    # The local copy is enough: no thread is left that looks after the node.
    store_opened = open_store(_config(home, store), lazy=True)
    try:
        yield store_opened
    finally:
        store_opened.close()


def check_database(home: Path, store: str, tally: Tally) -> None:
    """Checks that XTDB has what the local copy has."""
    comparison = store_kind(store).deliver_and_compare(_config(home, store))
    if comparison is None:
        return
    if comparison.quarantined:
        text = f"XTDB refused {comparison.quarantined}: {comparison.reason}"
        tally.fault("missing", text, comparison.quarantined)
    if comparison.differs:
        tally.fault("missing", f"XTDB and the local copy differ: {comparison.differs}")
    if comparison.extra > 0:
        tally.fault("doubled", f"XTDB has {comparison.extra} transactions more", comparison.extra)

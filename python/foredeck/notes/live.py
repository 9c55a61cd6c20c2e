"""The graph of a store that is being worked with, kept in step at every question."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from foredeck.errors import StoreUnavailable
from foredeck.notes.graph import Graph
from foredeck.store.protocol import LocalStore, Store

PATIENCE_S = 5.0
"""How long a question waits for what is new to be read. A model's tool call waits with it."""

BATCH = 100
"""Versions between two looks at the clock: many long notes in one go could take seconds."""


class StillReading(StoreUnavailable):
    """More is new than could be read in time. What was read is kept: the next question goes on."""


@contextmanager
def live_graph(store: Store, home: Path, patience_s: float = PATIENCE_S) -> Iterator[Graph]:
    """The graph of a store, up to date. `home`: the state folder, where the layer's file lies.

    Raises `StillReading`, and `StoreUnavailable` for a store that has no layers beside it.
    """
    from foredeck.derived.follower import Follower
    from foredeck.notes.layer import LAYER

    if not hasattr(store, "lineage"):
        raise StoreUnavailable("this store has no graph beside it")
    until = time.monotonic() + patience_s

    def check() -> None:
        if time.monotonic() > until:
            raise StillReading("the references of the store are still being read")

    with Follower(cast(LocalStore, store), LAYER, home, batch=BATCH) as follower:
        follower.catch_up(check)
        yield Graph(follower.db)

"""Notes: plain Markdown, read into references, tags, headings and properties, and their graph."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.derived.layer import LayerBusy, until
from foredeck.errors import StoreUnavailable
from foredeck.store.protocol import Store

if TYPE_CHECKING:
    from foredeck.notes.graph import Graph

PATIENCE_S = 2.0
"""How long a question waits for what is new to be read. A model's tool call waits with it."""

CHAT_PATIENCE_S = 1.0
"""How much of that links in chat messages may take: what is left is read at the next question."""

BATCH = 100
"""Versions between two looks at the clock: many long notes in one go could take seconds."""


class StillReading(StoreUnavailable):
    """More is new than could be read in time. What was read is kept: the next question goes on."""

    def __init__(self, text: str = "the references of the store are still being read") -> None:
        super().__init__(text)


@contextmanager
def live_graph(
    store: Store,
    home: Path,
    patience_s: float = PATIENCE_S,
    *,
    chats: bool = True,
    batch: int = BATCH,
) -> Iterator[Graph]:
    """The graph of a store, up to date. `home`: the state folder, where the layer's file lies.

    `chats`: also with the links in chat messages, the newest of them where time is short. `batch`:
    how many versions are taken in between two looks at the clock.

    Raises `StillReading`, and `StoreUnavailable` for a store that has no layers beside it.
    """
    # Not at the top: every engine imports this module, and few sessions ask for the graph.
    from foredeck.derived.follower import Follower
    from foredeck.notes.graph import Graph
    from foredeck.notes.layer import LAYER, read_chats

    if (local := store.local) is None:
        raise StoreUnavailable("this store has no graph beside it")
    check = until(time.monotonic() + patience_s, StillReading)
    with Follower(local, LAYER, home, batch=batch, patience_s=max(patience_s, 0)) as follower:
        follower.catch_up(check)
        if chats:
            with suppress(StillReading, LayerBusy):  # the graph without the newest links
                read_chats(follower, store, until(time.monotonic() + CHAT_PATIENCE_S, StillReading))
        yield Graph(follower.db)

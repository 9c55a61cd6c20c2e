"""Notes: Markdown as references, tags, headings and properties, and their graph."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.derived.layer import LayerBusy, until
from foredeck.errors import StoreUnavailable
from foredeck.store.store import Store

if TYPE_CHECKING:
    from foredeck.notes.graph import Graph

PATIENCE_S = 2.0
"""Of a question, and a tool call, for new text."""

CHAT_PATIENCE_S = 1.0
"""For links in chats; the rest waits for the next question."""

BATCH = 100
"""Versions between two looks at the clock."""


class StillReading(StoreUnavailable):
    """Not everything new was read in time; the next question continues."""

    def __init__(self, text: str = "the references of the store are still being read") -> None:
        super().__init__(text)


@contextmanager
def live_graph(
    store: Store, home: Path, patience_s: float = PATIENCE_S, *, chats: bool = True
) -> Iterator[Graph]:
    """Opens a store's graph, up to date.

    `chats`: include links in chat messages. Raises `StillReading`.
    """
    # Not at the top: every engine imports this module, and few sessions ask for the graph.
    from foredeck.derived.follower import Follower
    from foredeck.notes.graph import Graph
    from foredeck.notes.layer import read_chats

    check = until(time.monotonic() + patience_s, StillReading)
    with Follower(store, "notes", home, batch=BATCH, patience_s=max(patience_s, 0)) as follower:
        follower.catch_up(check)
        if chats:
            with suppress(StillReading, LayerBusy):  # the graph without the newest links
                read_chats(follower, store, until(time.monotonic() + CHAT_PATIENCE_S, StillReading))
        yield Graph(follower.db)

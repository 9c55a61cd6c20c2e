"""Journaled stores for tests: local copies of a namespace on a real node."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from foredeck.store.store import Store
from foredeck_xtdb.journal import JournalBounds
from foredeck_xtdb.link import Link, OwnLink, ServerLink
from foredeck_xtdb.local_copy import open_journaled, remote_of
from foredeck_xtdb.node import NodeFolder

from .pulled import Pulled, open_pulled

PATIENCE = 240.0
"""Seconds within which everything must have happened, also on a busy machine."""
BOUNDS = JournalBounds(10_000, 2**28)


@dataclass
class Told:
    """What the user was told, as `(level, text)`."""

    messages: list[tuple[str, str]] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)

    def __call__(self, level: str, text: str) -> None:
        self.messages.append((level, text))
        self.arrived.set()

    def wait(self, part: str) -> str:
        """The first message that holds `part`."""
        until(lambda: any(part in text for _, text in self.messages))
        return next(text for _, text in self.messages if part in text)


@dataclass(frozen=True)
class Machine:
    """One machine: its local copy, and its way to XTDB. Picklable."""

    file: Path
    link: Link
    bounds: JournalBounds = BOUNDS

    def __call__(self, notify: Told | None = None, *, lazy: bool = False) -> Store:
        """One more store on it."""
        return open_journaled(
            self.file,
            self.link,
            self.bounds,
            notify=notify or Told(),
            lazy=lazy,
            patience=PATIENCE,
            busy_timeout_ms=30_000,
        )


def server_link(node: NodeFolder, namespace: str, *, timeout_ms: int = 30_000) -> ServerLink:
    """The way to a namespace on a running node."""
    return ServerLink(node.running().url, node.token(), namespace, timeout_ms)


def new_namespace() -> str:
    """A name that no other test has."""
    return f"j{secrets.token_hex(8)}"


def direct(link: ServerLink) -> Pulled:
    """What XTDB itself holds."""
    timeout_ms = int(PATIENCE * 1000)
    return open_pulled(link.url, token=link.token, namespace=link.namespace, timeout_ms=timeout_ms)


def own_link(home: Path, *, timeout_ms: int = 30_000, notify: Told | None = None) -> OwnLink:
    """The way to the node of a state folder, with data that last."""
    return OwnLink(home, "rocksdb", "foredeck", timeout_ms, notify or Told())


def until(done: Callable[[], object]) -> None:
    """Wait for what another thread or process does."""
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline, "it has not happened"
        time.sleep(0.01)


def delivered(store: Store) -> None:
    """Wait until nothing waits for XTDB."""
    until(lambda: remote_of(store).backlog.entries == 0)

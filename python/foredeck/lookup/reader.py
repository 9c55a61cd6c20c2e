"""What one request reads: the store, its layers, and what of notes and memory counts there."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from foredeck.config import Config
from foredeck.derived import load_layer
from foredeck.derived.follower import Follower
from foredeck.derived.layer import OutOfTime, reported, until
from foredeck.memory.entry import MemoryReader, caps_of
from foredeck.memory.trust import KEY_FILE, user_of
from foredeck.notes.graph import Graph
from foredeck.notes.layer import read_chats
from foredeck.notes.parsed import NoteRule
from foredeck.search.index import SearchIndex
from foredeck.sources.filesystem import open_filesystems
from foredeck.sources.projects import checkout_of
from foredeck.store.kind import open_store
from foredeck.store.protocol import Advance, LocalStore, Store

PATIENCE_S = 1.0
"""How long a page waits for a layer; it says so where something is not taken in by then."""


BEHIND = "The index is still being made: what is missing here is found in a moment."


@dataclass(frozen=True, slots=True)
class Reader:
    """Opens the configured store for each request."""

    # Again each time: a connection of SQLite's keeps to the thread that opened it.

    config: Config
    edits: bool = False
    """Whether the user may change memory on the pages."""

    @contextmanager
    def store(self) -> Iterator[LocalStore]:
        """The store. Raises `StoreUnavailable` where it cannot be opened."""
        with closing(open_store(self.config, lazy=True)) as store:
            yield store

    @contextmanager
    def search(self, store: LocalStore) -> Iterator[tuple[SearchIndex, str]]:
        """The index for `search`, as far as it got within `PATIENCE_S`, and a line for the reader
        where that was not all."""
        with Follower(store, load_layer("search"), self.config.home, batch=500) as follower:
            complete = _in_time(follower.catch_up)
            with reported(follower.path):
                yield SearchIndex(follower.db), "" if complete else BEHIND

    @contextmanager
    def graph(self, store: LocalStore) -> Iterator[tuple[Graph, str]]:
        """The graph of references, and such a line."""
        with Follower(store, load_layer("notes"), self.config.home, batch=500) as follower:
            complete = _in_time(follower.catch_up) and _in_time(
                lambda advance: read_chats(follower, store, advance)
            )
            with reported(follower.path):
                yield Graph(follower.db), "" if complete else BEHIND

    def warm(self) -> None:
        """Bring the layers up to date, however long that takes. Errors show on the pages."""
        with self.store() as store:
            for name in ("search", "notes"):
                with Follower(store, load_layer(name), self.config.home, batch=500) as follower:
                    follower.catch_up()
                    if name == "notes":
                        read_chats(follower, store)


def note_rule(config: Config) -> NoteRule:
    """Which Markdown files are notes, by the configuration and the repositories they lie in."""
    filesystems = open_filesystems(config, str(Path.cwd()))
    return NoteRule(config.notes.folders, lambda folder: checkout_of(folder, filesystems))


def shown_memories(
    store: Store, config: Config, sessions: Collection[str] | None = None
) -> tuple[tuple[str, str], ...]:
    """The entries of memory that their user may find, each an id and a token: what is kept, and
    beyond sessions only what they have stated. `sessions`: only what is kept with these."""
    memory = _memory(store, config)
    if memory is None:
        return ()
    kept = memory.of_user() + [e for e in memory.all(state="kept") if e.document.place != "global"]
    return tuple(
        (entry.id, str(entry.token))
        for entry in kept
        if sessions is None or entry.document.session in sessions
    )


def stated_memories(store: Store, config: Config, project: str) -> tuple[tuple[str, str], ...]:
    """The same, for a model outside any session: what its user has stated that holds here."""
    memory = _memory(store, config)
    kept = () if memory is None else memory.of_user(project)
    return tuple((entry.id, str(entry.token)) for entry in kept)


def _memory(store: Store, config: Config) -> MemoryReader | None:
    # Without a key nothing was ever kept, and asking for the user would make one.
    if not (config.home / KEY_FILE).exists() or (user := user_of(config)) is None:
        return None
    return MemoryReader(store, user, caps_of(config))


def _in_time(work: Callable[[Advance], object]) -> bool:
    """Do work that calls an `Advance` at each step; give whether it was done within `PATIENCE_S`,
    after which it is broken off at a step."""
    try:
        work(until(time.monotonic() + PATIENCE_S))
    except OutOfTime:
        return False
    return True

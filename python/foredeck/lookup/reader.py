"""What one request reads: store, layers, notes and memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from foredeck.config import Config
from foredeck.derived.follower import Follower
from foredeck.derived.layer import OutOfTime, until
from foredeck.memory.entry import MemoryReader, caps_of
from foredeck.memory.trust import KEY_FILE, user_of
from foredeck.notes.graph import Graph
from foredeck.notes.layer import read_chats
from foredeck.notes.parsed import NoteRule
from foredeck.search.index import SearchIndex
from foredeck.sources.filesystem import open_filesystems
from foredeck.sources.projects import checkout_of, project_at
from foredeck.store.place import open_store
from foredeck.store.protocol import Advance
from foredeck.store.store import Store

PATIENCE_S = 1.0
"""A page mentions a layer that takes longer."""


BEHIND = "The index is still being made: what is missing here is found in a moment."


@dataclass(frozen=True, slots=True)
class Reader:
    """Opens the configured store per request."""

    # Again each time: a connection of SQLite's keeps to the thread that opened it.

    config: Config

    @contextmanager
    def store(self) -> Iterator[Store]:
        """The store. Raises `StoreUnavailable`."""
        with closing(open_store(self.config, lazy=True)) as store:
            yield store

    def project(self, folder: str) -> str:
        """The id of a folder's project."""
        return project_at(self.config, folder).id

    @contextmanager
    def search(self, store: Store) -> Iterator[tuple[SearchIndex, str]]:
        """The search index, as far as it gets in `PATIENCE_S`, with a line on the rest."""
        with Follower(store, "search", self.config.home, batch=500) as follower:
            complete = _in_time(follower.catch_up)
            with follower.tables() as db:
                yield SearchIndex(db), "" if complete else BEHIND

    @contextmanager
    def graph(self, store: Store) -> Iterator[tuple[Graph, str]]:
        """The graph, with such a line."""
        with Follower(store, "notes", self.config.home, batch=500) as follower:
            complete = _in_time(follower.catch_up) and _in_time(
                lambda advance: read_chats(follower, store, advance)
            )
            with follower.tables() as db:
                yield Graph(db), "" if complete else BEHIND

    def warm(self) -> None:
        """Updates the layers, however long it takes; pages show errors."""
        with self.store() as store:
            for name in ("search", "notes"):
                with Follower(store, name, self.config.home, batch=500) as follower:
                    follower.catch_up()
                    if name == "notes":
                        read_chats(follower, store)


def note_rule(config: Config) -> NoteRule:
    """Which Markdown files are notes."""
    filesystems = open_filesystems(config, str(Path.cwd()))
    return NoteRule(config.notes.folders, lambda folder: checkout_of(folder, filesystems))


def shown_memories(
    store: Store, config: Config, sessions: Collection[str] | None = None
) -> tuple[tuple[str, str], ...]:
    """Entries that the user may find, as id and token; beyond sessions only stated ones."""
    memory = _memory(store, config)
    if memory is None:
        return ()
    entries_kept = memory.of_user() + [
        e for e in memory.all(state="kept") if e.document.place != "global"
    ]
    return tuple(
        (entry.id, str(entry.token))
        for entry in entries_kept
        if sessions is None or entry.document.session in sessions
    )


def stated_memories(store: Store, config: Config, project: str) -> tuple[tuple[str, str], ...]:
    """Entries for a model outside sessions: what the user has stated here."""
    memory = _memory(store, config)
    entries_kept = () if memory is None else memory.of_user(project)
    return tuple((entry.id, str(entry.token)) for entry in entries_kept)


def _memory(store: Store, config: Config) -> MemoryReader | None:
    # Without a key nothing was ever kept, and asking for the user would make one.
    if not (config.home / KEY_FILE).exists() or (user := user_of(config)) is None:
        return None
    return MemoryReader(store, user, caps_of(config))


def _in_time(work: Callable[[Advance], object]) -> bool:
    """Runs stepwise work within `PATIENCE_S`; returns whether it finished."""
    try:
        work(until(time.monotonic() + PATIENCE_S))
    except OutOfTime:
        return False
    return True

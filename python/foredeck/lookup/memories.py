"""What of memory a search may show: to its user, and to a model outside any session."""

from __future__ import annotations

from collections.abc import Collection

from foredeck.config import Config
from foredeck.memory.reading import MemoryReader
from foredeck.memory.rules import caps_of
from foredeck.memory.user import KEY_FILE, user_of
from foredeck.store.protocol import Store


def shown_memories(
    store: Store, config: Config, sessions: Collection[str] | None = None
) -> tuple[tuple[str, str], ...]:
    """The entries of memory that their user may find, each an id and a token: what is kept, and
    beyond sessions only what they have stated. `sessions`: only what is kept with these."""
    if not (config.home / KEY_FILE).exists() or (user := user_of(config)) is None:
        return ()
    memory = MemoryReader(store, user, caps_of(config))
    kept = memory.of_user() + [e for e in memory.all(state="kept") if e.document.place != "global"]
    return tuple(
        (entry.id, str(entry.token))
        for entry in kept
        if sessions is None or entry.document.session in sessions
    )


def stated_memories(store: Store, config: Config, project: str) -> tuple[tuple[str, str], ...]:
    """The same, for a model outside any session: what its user has stated that holds here."""
    if not (config.home / KEY_FILE).exists() or (user := user_of(config)) is None:
        return ()
    kept = MemoryReader(store, user, caps_of(config)).of_user(project)
    return tuple((entry.id, str(entry.token)) for entry in kept)

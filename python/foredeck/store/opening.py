"""Opening the store that a configuration names."""

from __future__ import annotations

from pathlib import Path

from foredeck.config import Config
from foredeck.errors import StoreDamaged, StoreUnavailable
from foredeck.store.kind import PENDING_PURGE
from foredeck.store.location import quarantine
from foredeck.store.protocol import LocalStore, Notify, silent
from foredeck.store.registry import store_kind


def nothing_stored(config: Config) -> str:
    """What to tell a user who has no store yet."""
    return (
        f"nothing is stored yet: {store_kind(config.store).file(config)} does not exist. Run Pi "
        "with foredeck, or read what coding agents have kept with `foredeck ingest`. If it is "
        "elsewhere, name its folder with --home or FOREDECK_HOME."
    )


def open_store(config: Config, *, notify: Notify = silent, lazy: bool = False) -> LocalStore:
    """The configured store. Raises `StoreUnavailable` where it cannot be opened.

    A database is behind a local copy, so that no model call waits for it: `notify` says to the user
    when it is away and when it is back. `lazy`, for commands: the database is not started before
    something is needed from it, and then waited for.

    What an interrupted purge has left is not opened: sessions would begin anew.
    """
    if (config.home / PENDING_PURGE).exists():
        raise StoreUnavailable("a purge was interrupted: `foredeck purge` finishes it")
    return store_kind(config.store).open(config, notify=notify, lazy=lazy)


def store_file(config: Config) -> Path:
    """The file that the engine works with: the store itself, or the local copy of a database."""
    return store_kind(config.store).file(config)


def open_beside(
    config: Config, damage: StoreDamaged, inode: int | None, *, notify: Notify = silent
) -> tuple[LocalStore, str]:
    """Quarantine the damaged file and open a fresh one; with what to tell the user.

    `inode` is that of the damaged file (`store.quarantine`). Raises `StoreDamaged` where it cannot
    be moved.
    """
    file = store_file(config)
    try:
        moved_to = quarantine(file, inode)
    except OSError:
        raise damage from None
    kept = f"it is kept as {moved_to.name}" if moved_to else "another process has moved it away"
    return open_store(config, notify=notify), (
        f"{file} is {damage.found}: {kept}, {store_kind(config.store).describe_replacement()}; "
        "Pi's own session files are not touched."
    )

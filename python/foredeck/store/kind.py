"""What the rest of foredeck asks of a kind of store; opening the store that is configured.

Nothing outside a kind's own package asks which kind it is: a question to which each has another
answer is a method here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from foredeck.errors import StoreDamaged, StoreUnavailable
from foredeck.store import STORES
from foredeck.store.location import quarantine
from foredeck.store.protocol import LocalStore, Notify, ScanMark, Store, silent

if TYPE_CHECKING:
    from foredeck.config import Config
    from foredeck.finding import Finding

PENDING_PURGE = "purge.jsonl"
"""In the state folder: what an interrupted purge of the configured store still has to write."""

Settings = Callable[[int], tuple[str, ...]]
"""The configuration, as `KEY=VALUE`, that selects the n-th of several new, empty stores."""


class StorePlace(Protocol):
    """One store by its address, for what commands do with a whole one: copy it, and take something
    out of it for good, wherever this machine can reach it."""

    @property
    def name(self) -> str:
        """What a user calls it."""

    @property
    def pending(self) -> Path:
        """The file that holds what an interrupted purge still has to write."""

    @property
    def is_one_file(self) -> bool:
        """See `StoreKind.is_one_file`."""

    def describe(self) -> str:
        """Its full address; the same for two spellings of one place."""

    def open(self, *, create: bool) -> Store:
        """Open it, with everything that was committed to it. Raises `StoreUnavailable`, also for
        one that does not exist, unless it may be created."""

    def open_local(self) -> LocalStore:
        """Open what commands work with: it, or the local copy of it. Raises `StoreUnavailable`."""

    def after_copy(self) -> None:
        """Versions were copied into it, or some of them, behind the back of its engines."""

    def check_settled(self) -> None:
        """Raise `StoreUnavailable` where commits are still on their way to the database."""

    def other_blobs(self, known: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """The blobs, with their hashes, that are none of these: what only a database has."""

    def erase(self, ids: Collection[str], blobs: Collection[str], scanned: ScanMark) -> None:
        """Take documents with all their versions, and blobs, out of it. Raises `Conflict` where
        some of it has come into use since `scanned`."""

    def finish(self) -> list[str]:
        """After `erase`, which marks as free what it cannot overwrite: let nothing of it be left in
        the files of the store. What this machine cannot do is returned, for the database's
        administrator to do; none: it is done."""

    def all_parts(self) -> Iterator[Store]:
        """All that holds something of it, such as a database and its local copy, one after the
        other, to be closed. Raises `StoreUnavailable`."""


@dataclass(frozen=True, slots=True)
class DeliveredCopy:
    """What a comparison of a database with the local copy in front of it has found.

    quarantined  transactions that the database refused, and its `reason` for the last one
    differs      the first thing that is not the same in both; None where all is
    extra        transactions that only the database has
    holds        what the database holds, in words
    """

    quarantined: int
    reason: str | None
    differs: str | None
    extra: int
    holds: str


Report = Callable[[int, str], object]
"""Is called with how many steps were done, and of what."""


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What was backed up or restored.

    file       the file that was written, or the file or folder that is in place now
    counts     how much of what it holds, by nouns in the singular
    bytes      its size
    newest_ms  the time of its last transaction, or of the backup itself
    verified   the SHA-256 over everything that was read from both and is equal; None where only
               the file itself was checked
    kept       where what was there before is kept
    hints      what the user should know or do next
    """

    file: Path
    counts: Mapping[str, int]
    bytes: int
    newest_ms: int | None
    verified: str | None = None
    kept: Path | None = None
    hints: tuple[str, ...] = ()


class StoreKind(ABC):
    """One kind of store. Most methods are given the configuration, which names this kind.

    is_one_file  whether all that it keeps is in the file in the state folder
    replacement  a clause for the user about the store that replaces a damaged file
    """

    is_one_file = True
    replacement: str

    @abstractmethod
    def file(self, config: Config) -> Path:
        """The SQLite file that the engine works with: the store, or a local copy of it."""

    @abstractmethod
    def exists(self, config: Config) -> bool:
        """Whether something may be stored already. False only where that is certain."""

    def is_awake(self, config: Config) -> bool:  # noqa: ARG002
        """Whether it can be read at once, without starting a server for it."""
        return True

    @abstractmethod
    def open(self, config: Config, *, notify: Notify, lazy: bool = False) -> LocalStore:
        """Open it for an engine; `lazy`, for a command: see `open_store`."""

    @abstractmethod
    def open_whole(self, config: Config) -> Store:
        """The store itself, with no local copy in front of it. Raises `StoreUnavailable`."""

    @abstractmethod
    def place(self, config: Config, where: str = "") -> StorePlace:
        """The store at an address, or the configured one where that is empty. Raises
        `ConfigError` for what is no address."""

    @abstractmethod
    def findings(self, config: Config) -> Iterator[Finding]:
        """What `foredeck doctor` reports. Starts nothing, and changes nothing."""

    @abstractmethod
    def back_up(
        self, config: Config, target: Path, report: Report, *, verify: bool
    ) -> BackupReport:
        """Write everything into one file while others go on writing. `verify`: compare it with the
        store. Raises `StoreError`; an earlier backup in `target` stays then."""

    @abstractmethod
    def restore(self, config: Config, source: Path, report: Report, *, force: bool) -> BackupReport:
        """Put a backup in the place of the store, which is kept under another name where `force`
        allows it. Raises `StoreError`, and has changed nothing then."""

    def empty_stores(self) -> AbstractContextManager[Settings]:
        """New, empty stores for the time of the block, such as those of a replay; by default
        whatever each state folder has. Raises `StoreUnavailable`."""
        return nullcontext(lambda _number: ())

    def deliver_and_compare(self, config: Config) -> DeliveredCopy | None:  # noqa: ARG002
        """Bring all that waits to the database and read everything from both; None where there
        is no copy. Raises `StoreUnavailable` where the database does not take it."""
        return None


def store_kind(name: str) -> StoreKind:
    """The kind with a name in `STORES`, such as `config.store`."""
    kind: StoreKind = import_module(f"{STORES[name].package}.kind").KIND
    return kind


# Opening the store that a configuration names


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
    config: Config, damage: StoreDamaged, inode: int | None, *, notify: Notify
) -> tuple[LocalStore, str]:
    """Quarantine the damaged file and open a fresh one; with what to tell the user.

    `inode` is that of the damaged file (`store/location.py`). Raises `StoreDamaged` where it cannot
    be moved.
    """
    file = store_file(config)
    try:
        moved_to = quarantine(file, inode)
    except OSError:
        raise damage from None
    kept = f"it is kept as {moved_to.name}" if moved_to else "another process has moved it away"
    return open_store(config, notify=notify), (
        f"{file} is {damage.found}: {kept}, {store_kind(config.store).replacement}; "
        "Pi's own session files are not touched."
    )

"""Kinds of stores, and opening the configured one.

Only a kind's own package asks which kind it is.
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
from foredeck.store.protocol import (
    Copyable,
    Notify,
    ScanMark,
    silent,
)
from foredeck.store.store import Store

if TYPE_CHECKING:
    from foredeck.config import Config
    from foredeck.finding import Finding

PENDING_PURGE = "purge.jsonl"
"""What an interrupted purge still has to write, in the state folder."""

Settings = Callable[[int], tuple[str, ...]]
"""The configuration, as `KEY=VALUE`, that selects the n-th of several new, empty stores."""


class StorePlace(Protocol):
    """One store by its address, for commands that copy it or erase from it."""

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
        """The full address, the same for every spelling."""

    def open(self, *, create: bool) -> Copyable:
        """Opens the store. Raises `StoreUnavailable`, also for a missing one, unless it may be
        created."""

    def open_local(self) -> Store:
        """Opens the store or its local copy. Raises `StoreUnavailable`."""

    def after_copy(self) -> None:
        """Takes note that versions were copied in, unseen by its engines."""

    def check_settled(self) -> None:
        """Raises `StoreUnavailable` while commits are on their way to the database."""

    def other_blobs(self, known: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """Blobs that only the database has, with their hashes."""

    def erase(self, ids: Collection[str], blobs: Collection[str], scanned: ScanMark) -> None:
        """Erases documents with all versions, and blobs. Raises `Conflict` if something came into
        use since `scanned`."""

    def finish(self) -> list[str]:
        """Overwrites what `erase` has freed; returns what is left for the database's
        administrator."""

    def all_parts(self) -> Iterator[Copyable]:
        """The database and its local copy, one after the other. Raises `StoreUnavailable`."""


@dataclass(frozen=True, slots=True)
class DeliveredCopy:
    """A comparison of a database with its local copy.

    `quarantined`: transactions that the database refused; `differs`: the first difference; `extra`:
    transactions that only the database has.
    """

    quarantined: int
    reason: str | None
    differs: str | None
    extra: int
    holds: str


Report = Callable[[int, str], object]


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What was backed up or restored.

    `verified`: SHA-256 over what was read from both; None if only the file was checked. `kept`:
    where the previous store is. `hints`: what the user should do next.
    """

    file: Path
    counts: Mapping[str, int]
    bytes: int
    newest_ms: int | None
    verified: str | None = None
    kept: Path | None = None
    hints: tuple[str, ...] = ()


class StoreKind(ABC):
    """One kind of store.

    `replacement`: a clause for the user about the store that replaces a damaged file.
    """

    is_one_file = True
    replacement: str

    @abstractmethod
    def file(self, config: Config) -> Path:
        """The SQLite file that the engine works with."""

    @abstractmethod
    def exists(self, config: Config) -> bool:
        """Whether something may be stored already; False only if certain."""

    def is_awake(self, config: Config) -> bool:  # noqa: ARG002
        """Whether it can be read without starting a server."""
        return True

    @abstractmethod
    def open(self, config: Config, *, notify: Notify, lazy: bool = False) -> Store:
        """Opens it for an engine; `lazy`: see `open_store`."""

    @abstractmethod
    def place(self, config: Config, where: str = "") -> StorePlace:
        """The store at an address; the configured one if empty. Raises `ConfigError` for no
        address."""

    @abstractmethod
    def findings(self, config: Config) -> Iterator[Finding]:
        """What `foredeck doctor` reports; starts and changes nothing."""

    @abstractmethod
    def back_up(
        self, config: Config, target: Path, report: Report, *, verify: bool
    ) -> BackupReport:
        """Writes everything into one file while others go on writing; `verify` compares it.

        Raises `StoreError`, and leaves an earlier backup.
        """

    @abstractmethod
    def restore(self, config: Config, source: Path, report: Report, *, force: bool) -> BackupReport:
        """Puts a backup in place of the store, which `force` keeps under another name.

        Raises `StoreError`, with nothing changed.
        """

    def empty_stores(self) -> AbstractContextManager[Settings]:
        """New, empty stores for the block, as for a replay. Raises `StoreUnavailable`."""
        return nullcontext(lambda _number: ())

    def deliver_and_compare(self, config: Config) -> DeliveredCopy | None:  # noqa: ARG002
        """Delivers all that waits, and compares; None without a copy. Raises `StoreUnavailable`."""
        return None


def store_kind(name: str) -> StoreKind:
    """The kind with a name in `STORES`, such as `config.store`."""
    kind: StoreKind = import_module(f"{STORES[name].package}.{name}_kind").KIND
    return kind


# Opening the store that a configuration names


def nothing_stored(config: Config) -> str:
    """What to tell a user who has no store yet."""
    return (
        f"nothing is stored yet: {store_kind(config.store).file(config)} does not exist. Run Pi "
        "with foredeck, or read what coding agents have kept with `foredeck ingest`. If it is "
        "elsewhere, name its folder with --home or FOREDECK_HOME."
    )


def open_store(config: Config, *, notify: Notify = silent, lazy: bool = False) -> Store:
    """Opens the configured store. Raises `StoreUnavailable`, also while an interrupted purge waits.

    `lazy`, for commands: a database is not started before something is needed from it.
    """
    if (config.home / PENDING_PURGE).exists():
        raise StoreUnavailable("a purge was interrupted: `foredeck purge` finishes it")
    return store_kind(config.store).open(config, notify=notify, lazy=lazy)


def store_file(config: Config) -> Path:
    return store_kind(config.store).file(config)


def open_beside(
    config: Config, damage: StoreDamaged, inode: int | None, *, notify: Notify
) -> tuple[Store, str]:
    file = store_file(config)
    try:
        moved_to = quarantine(file, inode)
    except OSError:
        raise damage from None
    note = f"it is kept as {moved_to.name}" if moved_to else "another process has moved it away"
    return open_store(config, notify=notify), (
        f"{file} is {damage.found}: {note}, {store_kind(config.store).replacement}; "
        "Pi's own session files are not touched."
    )

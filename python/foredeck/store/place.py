"""Where stores are, and opening the configured one.

Only a kind's own package asks which kind it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from foredeck.errors import StoreDamaged, StoreUnavailable
from foredeck.regular_files import open_to_read
from foredeck.store import STORES
from foredeck.store.location import quarantine
from foredeck.store.protocol import Copyable, Notify, ScanMark, silent
from foredeck.store.store import Store, open_sqlite

if TYPE_CHECKING:
    from foredeck.config import Config
    from foredeck.finding import Finding
    from foredeck.store.backup import BackupReport, Report

PENDING_PURGE = "purge.jsonl"
"""What an interrupted purge still has to write, in the state folder."""

_PATIENCE_MS = 60_000
"""How long copying waits for a busy file: only the user who watches it waits."""
SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class CopyComparison:
    """A comparison of a database with its local copy.

    `quarantined`: transactions that the database refused; `differs`: the first difference; `extra`:
    transactions that only the database has.
    """

    quarantined: int
    reason: str | None
    differs: str | None
    extra: int
    holds: str


class StorePlace:
    """A store at an address: an SQLite file. Other kinds are subclasses."""

    is_one_file: ClassVar[bool] = True
    """Whether the file is all of it."""
    replacement: ClassVar[str] = (
        "and a fresh store takes its place. Objects and prompts of earlier sessions are in the old "
        "one"
    )
    """A clause for the user about the store that replaces a damaged file."""

    def __init__(self, config: Config, where: str = "") -> None:
        """The configured one if `where` is empty. Raises `ConfigError` for no address."""
        self.config = config
        self.file = Path(where).expanduser().absolute() if where else config.sqlite_file
        """The SQLite file that the engine works with."""
        self.name = "the store"
        """What a user calls it."""
        self.pending = config.home / PENDING_PURGE
        """The file that holds what an interrupted purge still has to write."""

    @classmethod
    def replaced(cls, config: Config, file: Path) -> StorePlace:
        """A store in the place of which another one was put."""
        place = cls(config, str(file))
        place.name = file.name
        place.pending = file.with_name(f"purge-{file.name}.jsonl")
        return place

    def describe(self) -> str:
        """The full address, the same for every spelling."""
        return f"sqlite:{self.file}"

    def exists(self) -> bool:
        """Whether something may be stored already; False only if certain."""
        return self.file.exists()

    def is_awake(self) -> bool:
        """Whether it can be read without starting a server."""
        return True

    def open(self, *, notify: Notify = silent, lazy: bool = False) -> Store:  # noqa: ARG002
        """Opens it for an engine; `lazy`: see `open_store`. Raises `StoreUnavailable`."""
        return self._open(self.config.sqlite.busy_timeout_ms)

    def open_to_copy(self, *, create: bool) -> Copyable:
        """Opens it to copy it whole. Raises `StoreUnavailable`, also for a missing one, unless it
        may be created."""
        if not create and not self.file.exists():
            raise StoreUnavailable(f"there is nothing to copy: {self.file} does not exist")
        # A file that a user has named, unlike the configured one, is most often another program's,
        # and not a damaged store: it is to be left where it is.
        if self.file != self.config.sqlite_file and not may_be_sqlite(self.file):
            raise StoreUnavailable(
                f"{self.file} is not a foredeck store: name a file of its own, as in "
                "sqlite:~/foredeck-copy.db"
            )
        return self._open(_PATIENCE_MS)

    def _open(self, busy_timeout_ms: int) -> Store:
        synchronous = self.config.sqlite.synchronous
        return open_sqlite(self.file, synchronous=synchronous, busy_timeout_ms=busy_timeout_ms)

    def after_copy(self) -> None:
        """Takes note that versions were copied in, unseen by its engines."""

    def check_settled(self) -> None:
        """Raises `StoreUnavailable` while commits are on their way to the database."""

    def other_blobs(self, digests: Collection[str]) -> Iterator[tuple[str, bytes]]:  # noqa: ARG002
        """Blobs besides `digests` that only the database has, with their hashes."""
        return iter(())

    def erase(self, ids: Collection[str], blobs: Collection[str], scanned: ScanMark) -> None:
        """Erases documents with all versions, and blobs. Raises `Conflict` if something came into
        use since `scanned`."""
        with closing(self.open()) as store:
            store.erase(ids, blobs, scanned)

    def finish(self) -> list[str]:
        """Overwrites what `erase` has freed, now or long ago; returns what is left for the
        database's administrator."""
        with closing(self.open()) as store:
            store.vacuum()
        return []

    def all_parts(self) -> Iterator[Copyable]:
        """The database and its local copy, one after the other. Raises `StoreUnavailable`."""
        yield self.open()

    def findings(self) -> Iterator[Finding]:
        """What `foredeck doctor` reports; starts and changes nothing."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.store.backup import check_file

        yield check_file(self.file)

    def back_up(self, target: Path, report: Report, *, verify: bool) -> BackupReport:
        """Writes everything into one file while others go on writing; `verify` compares it.

        Raises `StoreError`, and leaves an earlier backup.
        """
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.store.backup import back_up, opened_backup
        from foredeck.store.copying import verified

        if not self.file.exists():
            raise StoreUnavailable(f"nothing is stored yet: {self.file} does not exist")
        made = back_up(self.file, target, report)
        if not verify:
            return made
        with opened_backup(target) as copy, closing(self.open()) as store:
            digest = verified(store, copy, target, lambda: report(1, "verifying"))
        return replace(made, verified=digest)

    def restore(self, source: Path, report: Report, *, force: bool) -> BackupReport:
        """Puts a backup in place of the store, which `force` keeps under another name.

        Raises `StoreError`, with nothing changed.
        """
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.store.backup import contents_of, restore

        old_store = restore(source, self.file, force=force, report=report)
        return replace(contents_of(self.file), kept=old_store)

    def deliver_and_compare(self) -> CopyComparison | None:
        """Delivers all that waits, and compares; None without a copy. Raises `StoreUnavailable`."""
        return None


PLACE = StorePlace


def may_be_sqlite(path: Path) -> bool:
    """Whether a file begins like SQLite's; also if it is empty, missing or unreadable."""
    try:
        with open_to_read(path) as file:
            return file.read(len(SQLITE)) in (b"", SQLITE)
    except OSError:
        return True


def place_type(name: str) -> type[StorePlace]:
    """The kind of places with a name in `STORES`, such as `config.store`."""
    places: type[StorePlace] = import_module(STORES[name].module).PLACE
    return places


def store_place(config: Config) -> StorePlace:
    """The configured store."""
    return place_type(config.store)(config)


def nothing_stored(config: Config) -> str:
    """What to tell a user who has no store yet."""
    return (
        f"nothing is stored yet: {store_place(config).file} does not exist. Run Pi "
        "with foredeck, or read what coding agents have kept with `foredeck ingest`. If it is "
        "elsewhere, name its folder with --home or FOREDECK_HOME."
    )


def open_store(config: Config, *, notify: Notify = silent, lazy: bool = False) -> Store:
    """Opens the configured store. Raises `StoreUnavailable`, also while an interrupted purge waits.

    `lazy`, for commands: a database is not started before something is needed from it.
    """
    if (config.home / PENDING_PURGE).exists():
        raise StoreUnavailable("a purge was interrupted: `foredeck purge` finishes it")
    return store_place(config).open(notify=notify, lazy=lazy)


def store_file(config: Config) -> Path:
    """The SQLite file that the engine works with."""
    return store_place(config).file


def open_beside(
    config: Config, damage: StoreDamaged, inode: int | None, *, notify: Notify
) -> tuple[Store, str]:
    """Moves a damaged file away and opens a new store in its place; what to tell the user of that.

    Raises `damage` if the file cannot be moved.
    """
    file = store_file(config)
    try:
        moved_to = quarantine(file, inode)
    except OSError:
        raise damage from None
    note = f"it is kept as {moved_to.name}" if moved_to else "another process has moved it away"
    return open_store(config, notify=notify), (
        f"{file} is {damage.found}: {note}, {store_place(config).replacement}; "
        "Pi's own session files are not touched."
    )

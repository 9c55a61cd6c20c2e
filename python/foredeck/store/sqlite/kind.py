"""SQLite as a kind of store: the default, one file in the state folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from foredeck.errors import StoreUnavailable
from foredeck.regular_files import open_to_read
from foredeck.store.kind import PENDING_PURGE, BackupReport, Report, StoreKind, StorePlace
from foredeck.store.protocol import Notify, ScanMark
from foredeck.store.sqlite.adapter import SqliteStore, open_sqlite

if TYPE_CHECKING:
    from foredeck.config import Config
    from foredeck.finding import Finding

_PATIENCE_MS = 60_000
"""How long copying waits for a busy file: only the user who watches it waits."""
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class SqlitePlace:
    """See `StorePlace`: a store in a file anywhere."""

    path: Path
    config: Config

    def describe(self) -> str:
        """See `StorePlace.describe`."""
        return f"sqlite:{self.path}"

    def open(self, *, create: bool) -> SqliteStore:
        """See `StorePlace.open`."""
        if not create and not self.path.exists():
            raise StoreUnavailable(f"there is nothing to copy: {self.path} does not exist")
        # A file that a user has named, unlike the configured one, is most often another program's,
        # and not a damaged store: it is to be left where it is.
        if self.path != self.config.sqlite_file and not may_be_sqlite(self.path):
            raise StoreUnavailable(
                f"{self.path} is not a foredeck store: name a file of its own, as in "
                "sqlite:~/foredeck-copy.db"
            )
        return open_sqlite(
            self.path, synchronous=self.config.sqlite.synchronous, busy_timeout_ms=_PATIENCE_MS
        )

    def after_copy(self) -> None:
        """See `StorePlace.after_copy`: engines read the file itself, so there is nothing to do."""


def may_be_sqlite(path: Path) -> bool:
    """Whether a file begins as those of SQLite do; also for one that is empty or not there, and one
    that cannot be read, since opening it says why."""
    try:
        with open_to_read(path) as file:
            return file.read(len(_SQLITE)) in (b"", _SQLITE)
    except OSError:
        return True


@dataclass(frozen=True, slots=True)
class SqliteErasable:
    """See `ErasableStore`: the configured store, or one in whose place another was put."""

    name: str
    path: Path
    pending: Path
    config: Config
    is_one_file: ClassVar[bool] = True

    def open(self) -> SqliteStore:
        """See `ErasableStore.open`."""
        return _opened(self.path, self.config)

    def check_settled(self) -> None:
        """See `ErasableStore.check_settled`: what is committed has arrived."""

    def other_blobs(self, known: Collection[str]) -> Iterator[tuple[str, bytes]]:  # noqa: ARG002
        """See `ErasableStore.other_blobs`."""
        return iter(())

    def erase(self, ids: Collection[str], blobs: Collection[str], scanned: ScanMark) -> None:
        """See `ErasableStore.erase`."""
        with closing(self.open()) as store:
            store.erase(ids, blobs, scanned)

    def finish(self) -> list[str]:
        """See `ErasableStore.finish`: free pages may hold what was deleted long ago."""
        with closing(self.open()) as store:
            store.vacuum()
        return []

    def all_parts(self) -> Iterator[SqliteStore]:
        """See `ErasableStore.all_parts`."""
        yield self.open()


def _opened(path: Path, config: Config) -> SqliteStore:
    return open_sqlite(
        path, synchronous=config.sqlite.synchronous, busy_timeout_ms=config.sqlite.busy_timeout_ms
    )


class SqliteKind(StoreKind):
    """See `StoreKind`."""

    def file(self, config: Config) -> Path:
        """See `StoreKind.file`."""
        return config.sqlite_file

    def exists(self, config: Config) -> bool:
        """See `StoreKind.exists`."""
        return config.sqlite_file.exists()

    def open(
        self,
        config: Config,
        *,
        notify: Notify,  # noqa: ARG002
        lazy: bool = False,  # noqa: ARG002
    ) -> SqliteStore:
        """See `StoreKind.open`."""
        return self.open_whole(config)

    def open_whole(self, config: Config) -> SqliteStore:
        """See `StoreKind.open_whole`."""
        return _opened(config.sqlite_file, config)

    def place(self, config: Config, where: str) -> StorePlace:
        """See `StoreKind.place`."""
        path = Path(where).expanduser().absolute() if where else config.sqlite_file
        return SqlitePlace(path, config)

    def describe_replacement(self) -> str:
        """See `StoreKind.describe_replacement`."""
        return (
            "and a fresh store takes its place. Objects and prompts of earlier sessions are in "
            "the old one"
        )

    def findings(self, config: Config) -> Iterator[Finding]:
        """See `StoreKind.findings`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.store.sqlite.backup import check_file

        yield check_file(config.sqlite_file)

    def erasable(self, config: Config) -> SqliteErasable:
        """See `StoreKind.erasable`."""
        return SqliteErasable("the store", config.sqlite_file, config.home / PENDING_PURGE, config)

    def back_up(
        self, config: Config, target: Path, report: Report, *, verify: bool
    ) -> BackupReport:
        """See `StoreKind.back_up`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.store.sqlite.backup import back_up

        if not config.sqlite_file.exists():
            raise StoreUnavailable(f"nothing is stored yet: {config.sqlite_file} does not exist")
        made = back_up(config.sqlite_file, target, report)
        return replace(made, verified=self._verified(config, target, report)) if verify else made

    def _verified(self, config: Config, backup: Path, report: Report) -> str:
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.store.copying import verified
        from foredeck.store.sqlite.backup import opened_backup

        with opened_backup(backup) as copy, closing(self.open_whole(config)) as store:
            return verified(store, copy, backup, lambda: report(1, "verifying"))

    def restore(self, config: Config, source: Path, report: Report, *, force: bool) -> BackupReport:
        """See `StoreKind.restore`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.store.sqlite.backup import contents_of, restore

        kept = restore(source, config.sqlite_file, force=force, report=report)
        return replace(contents_of(config.sqlite_file), kept=kept)


KIND = SqliteKind()

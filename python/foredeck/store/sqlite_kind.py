"""SQLite as a kind of store: the default, one file in the state folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from foredeck.errors import StoreUnavailable
from foredeck.regular_files import open_to_read
from foredeck.store.kind import PENDING_PURGE, BackupReport, Report, StoreKind
from foredeck.store.protocol import Notify, ScanMark
from foredeck.store.store import Store, open_sqlite

if TYPE_CHECKING:
    from foredeck.config import Config
    from foredeck.finding import Finding

_PATIENCE_MS = 60_000
"""How long copying waits for a busy file: only the user who watches it waits."""
SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class SqlitePlace:
    """A store in a file anywhere; `kept` if another was put in its place."""

    path: Path
    config: Config
    kept: bool = False
    is_one_file: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return self.path.name if self.kept else "the store"

    @property
    def pending(self) -> Path:
        if self.kept:
            return self.path.with_name(f"purge-{self.path.name}.jsonl")
        return self.config.home / PENDING_PURGE

    def describe(self) -> str:
        return f"sqlite:{self.path}"

    def open(self, *, create: bool) -> Store:
        if not create and not self.path.exists():
            raise StoreUnavailable(f"there is nothing to copy: {self.path} does not exist")
        # A file that a user has named, unlike the configured one, is most often another program's,
        # and not a damaged store: it is to be left where it is.
        if self.path != self.config.sqlite_file and not may_be_sqlite(self.path):
            raise StoreUnavailable(
                f"{self.path} is not a foredeck store: name a file of its own, as in "
                "sqlite:~/foredeck-copy.db"
            )
        return _opened(self.path, self.config, _PATIENCE_MS)

    def open_local(self) -> Store:
        return _opened(self.path, self.config)

    def after_copy(self) -> None:
        """Does nothing: engines read the file itself."""

    def check_settled(self) -> None:
        """See `StorePlace.check_settled`: what is committed has arrived."""

    def other_blobs(self, known: Collection[str]) -> Iterator[tuple[str, bytes]]:  # noqa: ARG002
        return iter(())

    def erase(self, ids: Collection[str], blobs: Collection[str], scanned: ScanMark) -> None:
        with closing(self.open_local()) as store:
            store.erase(ids, blobs, scanned)

    def finish(self) -> list[str]:
        """Overwrites free pages, which may hold what was deleted long ago."""
        with closing(self.open_local()) as store:
            store.vacuum()
        return []

    def all_parts(self) -> Iterator[Store]:
        yield self.open_local()


def may_be_sqlite(path: Path) -> bool:
    """Whether a file begins like SQLite's; also if it is empty, missing or unreadable."""
    try:
        with open_to_read(path) as file:
            return file.read(len(SQLITE)) in (b"", SQLITE)
    except OSError:
        return True


def _opened(path: Path, config: Config, busy_timeout_ms: int | None = None) -> Store:
    busy_ms = busy_timeout_ms or config.sqlite.busy_timeout_ms
    return open_sqlite(path, synchronous=config.sqlite.synchronous, busy_timeout_ms=busy_ms)


class SqliteKind(StoreKind):
    replacement = (
        "and a fresh store takes its place. Objects and prompts of earlier sessions are in the old "
        "one"
    )

    def file(self, config: Config) -> Path:
        return config.sqlite_file

    def exists(self, config: Config) -> bool:
        return config.sqlite_file.exists()

    def open(
        self,
        config: Config,
        *,
        notify: Notify,  # noqa: ARG002
        lazy: bool = False,  # noqa: ARG002
    ) -> Store:
        return _opened(config.sqlite_file, config)

    def place(self, config: Config, where: str = "") -> SqlitePlace:
        path = Path(where).expanduser().absolute() if where else config.sqlite_file
        return SqlitePlace(path, config)

    def findings(self, config: Config) -> Iterator[Finding]:
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.store.backup import check_file

        yield check_file(config.sqlite_file)

    def back_up(
        self, config: Config, target: Path, report: Report, *, verify: bool
    ) -> BackupReport:
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.store.backup import back_up

        if not config.sqlite_file.exists():
            raise StoreUnavailable(f"nothing is stored yet: {config.sqlite_file} does not exist")
        made = back_up(config.sqlite_file, target, report)
        return replace(made, verified=self._verified(config, target, report)) if verify else made

    def _verified(self, config: Config, backup: Path, report: Report) -> str:
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.store.backup import opened_backup
        from foredeck.store.copying import verified

        with opened_backup(backup) as copy, closing(_opened(config.sqlite_file, config)) as store:
            return verified(store, copy, backup, lambda: report(1, "verifying"))

    def restore(self, config: Config, source: Path, report: Report, *, force: bool) -> BackupReport:
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.store.backup import contents_of, restore

        old_store = restore(source, config.sqlite_file, force=force, report=report)
        return replace(contents_of(config.sqlite_file), kept=old_store)


KIND = SqliteKind()

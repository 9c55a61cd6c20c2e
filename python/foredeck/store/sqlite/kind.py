"""SQLite as a kind of store: the default, one file in the state folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.errors import Corrupt, StoreUnavailable
from foredeck.store.kind import BackupReport, Report, StoreKind, StorePlace
from foredeck.store.protocol import Looked, Notify
from foredeck.store.sqlite.adapter import SqliteStore, open_sqlite

if TYPE_CHECKING:
    from foredeck.config import Config
    from foredeck.finding import Finding
    from foredeck.store.sqlite.backup import BackupContents

_PATIENCE_MS = 60_000
"""How long copying waits for a busy file: only the user who watches it waits."""


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
        return open_sqlite(
            self.path,
            synchronous=self.config.sqlite.synchronous,
            busy_timeout_ms=_PATIENCE_MS,
        )

    def after_copy(self) -> None:
        """See `StorePlace.after_copy`: engines read the file itself, so there is nothing to do."""


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
        return open_sqlite(
            config.sqlite_file,
            synchronous=config.sqlite.synchronous,
            busy_timeout_ms=config.sqlite.busy_timeout_ms,
        )

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
        from foredeck.store.sqlite.checking import check_file

        yield check_file(config.sqlite_file)

    def check_settled(self, config: Config) -> None:
        """See `StoreKind.check_settled`: what is committed has arrived."""

    def erase(
        self, config: Config, ids: Collection[str], blobs: Collection[str], looked: Looked
    ) -> None:
        """See `StoreKind.erase`."""
        with closing(self.open_whole(config)) as store:
            store.erase(ids, blobs, looked)

    def finish_erasing(self, config: Config) -> list[str]:
        """See `StoreKind.finish_erasing`: free pages may hold what was deleted long ago."""
        with closing(self.open_whole(config)) as store:
            store.vacuum()
        return []

    def back_up(
        self, config: Config, target: Path, report: Report, *, verify: bool
    ) -> BackupReport:
        """See `StoreKind.back_up`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.store.sqlite.backup import back_up

        if not config.sqlite_file.exists():
            raise StoreUnavailable(f"nothing is stored yet: {config.sqlite_file} does not exist")
        contents = back_up(config.sqlite_file, target, report)
        verified = self._verified(config, target, report) if verify else None
        return _described(target, contents, verified=verified)

    def _verified(self, config: Config, backup: Path, report: Report) -> str:
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.store.copying import compare
        from foredeck.store.sqlite.backup import opened_backup

        with opened_backup(backup) as copy, closing(self.open_whole(config)) as store:
            found = compare(store, copy, lambda: report(1, "verifying"))
        if not found.equal:
            raise Corrupt(f"{backup} is not a copy of what is here: {found.differs} differs")
        return found.copy.sha256

    def restore(self, config: Config, source: Path, report: Report, *, force: bool) -> BackupReport:
        """See `StoreKind.restore`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.store.sqlite.backup import contents_of, restore

        kept = restore(source, config.sqlite_file, force=force, report=report)
        return _described(config.sqlite_file, contents_of(config.sqlite_file), kept=kept)


def _described(
    file: Path, contents: BackupContents, *, verified: str | None = None, kept: Path | None = None
) -> BackupReport:
    counts = {
        "session": contents.sessions,
        "version": contents.versions,
        "object": contents.objects,
        "transaction": contents.transactions,
    }
    return BackupReport(file, counts, contents.bytes, contents.newest_ms, verified, kept)


KIND = SqliteKind()

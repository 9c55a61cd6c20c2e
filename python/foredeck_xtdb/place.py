"""A store in XTDB, by its address; imports what a question needs when it is asked."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.errors import ConfigError, StoreUnavailable
from foredeck.store.place import CopyComparison, StorePlace
from foredeck.store.protocol import Copyable, Notify, ScanMark, digests_of, portions, silent
from foredeck.store.store import Store, open_sqlite
from foredeck_xtdb.journal import read_backlog
from foredeck_xtdb.link import copy_file, open_database
from foredeck_xtdb.local_copy import open_copy

if TYPE_CHECKING:
    from foredeck.config import Config
    from foredeck.finding import Finding
    from foredeck.store.backup import BackupReport, Report
    from foredeck_xtdb.database.adapter import Database

_PORTION = 200


class XtdbPlace(StorePlace):
    """A namespace of XTDB, and the local copy in front of it."""

    is_one_file = False
    replacement = (
        "and a new copy is made from what XTDB has. What still waited for XTDB is in the old one "
        "alone"
    )

    def __init__(self, config: Config, where: str = "") -> None:
        if where and not where.startswith(("http://", "https://")):
            raise ConfigError(f"{where!r}: an address begins with http:// or https://")
        xtdb = config.xtdb.model_copy(update={"url": where or config.xtdb.url})
        super().__init__(config.model_copy(update={"xtdb": xtdb, "store": "xtdb"}))
        self.file = copy_file(self.config)

    def describe(self) -> str:
        where = self.config.xtdb.url or str(self.config.home / "xtdb")
        return f"xtdb:{where.rstrip('/')} ({self.config.xtdb.namespace})"

    def exists(self) -> bool:
        """See `StorePlace.exists`: only the database could tell."""
        return True

    def is_awake(self) -> bool:
        # Not at the top: only commands need it, an engine starts without.
        from foredeck_xtdb.node import own_node_folder

        config = self.config
        return config.xtdb.url is not None or own_node_folder(config.home).running() is not None

    def open(self, *, notify: Notify = silent, lazy: bool = False) -> Store:
        """See `StorePlace.open`: the local copy, so that no request waits for the database."""
        return open_copy(self.config, notify=notify, lazy=lazy)

    def _open_copy(self) -> Store:
        return open_sqlite(self.file, busy_timeout_ms=self.config.sqlite.busy_timeout_ms)

    def open_to_copy(self, *, create: bool) -> Database:  # noqa: ARG002
        """The database, once everything in the local copy is delivered."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck_xtdb.maintenance import open_delivered

        return open_delivered(self.config)

    def after_copy(self) -> None:
        """Makes the local copy read everything anew."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck_xtdb.maintenance import follow_anew

        follow_anew([self.file])

    def check_settled(self) -> None:
        if entries := read_backlog(self.file).entries:
            raise StoreUnavailable(
                f"commits are still to go to XTDB ({entries}): `foredeck xtdb sync` delivers them, "
                "then try again"
            )

    def other_blobs(self, digests: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """Blobs that the local copy does not have."""
        with closing(open_database(self.config)) as database:
            absent = [digest for digest in digests_of(database) if digest not in digests]
            for portion in portions(absent, _PORTION):
                yield from database.blobs(portion).items()

    def erase(self, ids: Collection[str], blobs: Collection[str], scanned: ScanMark) -> None:
        # The local copy last: killed in between, it still has that by which the next attempt finds
        # what is to go. The other way round the database would keep what nobody knows of any more.
        with closing(self._open_copy()) as copy:
            # Checked before the database is touched, and again by the copy, under its lock.
            copy.check_unused(scanned, ids, blobs)
            with closing(open_database(self.config)) as database:
                database.erase(ids, blobs)
            copy.erase(ids, blobs, scanned)

    def finish(self) -> list[str]:
        """Rewrites a node of foredeck's own."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck_xtdb.maintenance import compact_node, still_to_do

        with closing(self._open_copy()) as copy:
            copy.vacuum()
        if self.config.xtdb.url is None and self.config.xtdb.topology != "memory":
            compact_node(self.config.home)
        return still_to_do(self.config)

    def all_parts(self) -> Iterator[Copyable]:
        yield open_database(self.config)
        yield self._open_copy()

    def findings(self) -> Iterator[Finding]:
        # Not at the top: only commands need it, an engine starts without.
        from foredeck_xtdb.maintenance import check_journal, check_xtdb

        yield check_xtdb(self.config)
        yield check_journal(self.config)

    def back_up(self, target: Path, report: Report, *, verify: bool) -> BackupReport:
        # Not at the top: only commands need it, an engine starts without.
        from foredeck_xtdb.maintenance import back_up

        return back_up(self.config, target, report, verify=verify)

    def restore(self, source: Path, report: Report, *, force: bool) -> BackupReport:
        # Not at the top: only commands need it, an engine starts without.
        from foredeck_xtdb.maintenance import other_place, restore

        if force:
            raise StoreUnavailable(f"--force is for SQLite: {other_place(self.config)}")
        return restore(self.config, source, report)

    def deliver_and_compare(self) -> CopyComparison:
        # Not at the top: only commands need it, an engine starts without.
        from foredeck_xtdb.maintenance import deliver_and_compare

        return deliver_and_compare(self.config)


PLACE = XtdbPlace

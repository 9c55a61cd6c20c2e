"""XTDB as a kind of store: the door to this package (`foredeck.store`).

What a question needs is imported when it is asked: an engine never needs the commands, and a
command that looks into the local copy needs neither Java nor HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.store.kind import BackupReport, DeliveredCopy, Report, Settings, StoreKind
from foredeck.store.protocol import Notify
from foredeck.xtdb.link import copy_file, open_database
from foredeck.xtdb.local_copy import JournaledStore, open_copy

if TYPE_CHECKING:
    from foredeck.config import Config
    from foredeck.finding import Finding
    from foredeck.xtdb.database.adapter import XtdbStore
    from foredeck.xtdb.maintenance import XtdbPlace


class XtdbKind(StoreKind):
    """See `StoreKind`."""

    is_one_file = False
    replacement = (
        "and a new copy is made from what XTDB has. What still waited for XTDB is in the old one "
        "alone"
    )

    def file(self, config: Config) -> Path:
        """See `StoreKind.file`: the local copy."""
        return copy_file(config)

    def exists(self, config: Config) -> bool:  # noqa: ARG002
        """See `StoreKind.exists`: only the database could tell."""
        return True

    def is_awake(self, config: Config) -> bool:
        """See `StoreKind.is_awake`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.xtdb.node import own_node_folder

        return config.xtdb.url is not None or own_node_folder(config.home).running() is not None

    def open(self, config: Config, *, notify: Notify, lazy: bool = False) -> JournaledStore:
        """See `StoreKind.open`: the local copy, so that no request waits for the database."""
        return open_copy(config, notify=notify, lazy=lazy)

    def open_whole(self, config: Config) -> XtdbStore:
        """See `StoreKind.open_whole`."""
        return open_database(config)

    def place(self, config: Config, where: str = "") -> XtdbPlace:
        """See `StoreKind.place`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.xtdb.maintenance import XtdbPlace

        return XtdbPlace.at(config, where)

    def findings(self, config: Config) -> Iterator[Finding]:
        """See `StoreKind.findings`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.xtdb.maintenance import check_journal, check_xtdb

        yield check_xtdb(config)
        yield check_journal(config)

    def back_up(
        self, config: Config, target: Path, report: Report, *, verify: bool
    ) -> BackupReport:
        """See `StoreKind.back_up`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.xtdb.backup import back_up

        return back_up(config, target, report, verify=verify)

    def restore(self, config: Config, source: Path, report: Report, *, force: bool) -> BackupReport:
        """See `StoreKind.restore`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.xtdb.backup import restore

        return restore(config, source, report, force=force)

    def empty_stores(self) -> AbstractContextManager[Settings]:
        """See `StoreKind.empty_stores`: one node in memory for all of them."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.xtdb.maintenance import stores_in_memory

        return stores_in_memory()

    def deliver_and_compare(self, config: Config) -> DeliveredCopy:
        """See `StoreKind.deliver_and_compare`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.xtdb.maintenance import deliver_and_compare

        return deliver_and_compare(config)


KIND = XtdbKind()

"""XTDB as a kind of store; imports what a question needs when it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.store.kind import BackupReport, DeliveredCopy, Report, Settings, StoreKind
from foredeck.store.protocol import Notify
from foredeck.store.store import Store
from foredeck_xtdb.link import copy_file
from foredeck_xtdb.local_copy import open_copy

if TYPE_CHECKING:
    from foredeck.config import Config
    from foredeck.finding import Finding
    from foredeck_xtdb.maintenance import XtdbPlace


class XtdbKind(StoreKind):
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
        # Not at the top: only commands need it, an engine starts without.
        from foredeck_xtdb.node import own_node_folder

        return config.xtdb.url is not None or own_node_folder(config.home).running() is not None

    def open(self, config: Config, *, notify: Notify, lazy: bool = False) -> Store:
        """See `StoreKind.open`: the local copy, so that no request waits for the database."""
        return open_copy(config, notify=notify, lazy=lazy)

    def place(self, config: Config, where: str = "") -> XtdbPlace:
        # Not at the top: only commands need it, an engine starts without.
        from foredeck_xtdb.maintenance import XtdbPlace

        return XtdbPlace.at(config, where)

    def findings(self, config: Config) -> Iterator[Finding]:
        # Not at the top: only commands need it, an engine starts without.
        from foredeck_xtdb.maintenance import check_journal, check_xtdb

        yield check_xtdb(config)
        yield check_journal(config)

    def back_up(
        self, config: Config, target: Path, report: Report, *, verify: bool
    ) -> BackupReport:
        # Not at the top: only commands need it, an engine starts without.
        from foredeck_xtdb.backup import back_up

        return back_up(config, target, report, verify=verify)

    def restore(self, config: Config, source: Path, report: Report, *, force: bool) -> BackupReport:
        # Not at the top: only commands need it, an engine starts without.
        from foredeck_xtdb.backup import restore

        return restore(config, source, report, force=force)

    def empty_stores(self) -> AbstractContextManager[Settings]:
        """See `StoreKind.empty_stores`: one node in memory for all of them."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck_xtdb.maintenance import stores_in_memory

        return stores_in_memory()

    def deliver_and_compare(self, config: Config) -> DeliveredCopy:
        # Not at the top: only commands need it, an engine starts without.
        from foredeck_xtdb.maintenance import deliver_and_compare

        return deliver_and_compare(config)


KIND = XtdbKind()

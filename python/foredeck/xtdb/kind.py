"""XTDB as a kind of store: the door to this package (`foredeck.store.registry`).

What a question needs is imported when it is asked: an engine never needs the commands, and a
command that looks into the local copy needs neither Java nor HTTP.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.errors import StoreUnavailable
from foredeck.model.portions import portions
from foredeck.store.kind import BackupReport, DeliveredCopy, Report, Settings, StoreKind, StorePlace
from foredeck.store.protocol import Looked, Notify
from foredeck.store.sqlite.adapter import open_sqlite
from foredeck.store.whole import digests_of
from foredeck.xtdb.opening import copy_file, open_copy, open_database

if TYPE_CHECKING:
    from foredeck.config import Config
    from foredeck.finding import Finding
    from foredeck.xtdb.database.adapter import XtdbStore
    from foredeck.xtdb.journal.store import JournaledStore


class XtdbKind(StoreKind):
    """See `StoreKind`."""

    is_one_file = False

    def file(self, config: Config) -> Path:
        """See `StoreKind.file`: the local copy."""
        return copy_file(config)

    def exists(self, config: Config) -> bool:  # noqa: ARG002
        """See `StoreKind.exists`: only the database could tell."""
        return True

    def is_awake(self, config: Config) -> bool:
        """See `StoreKind.is_awake`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.xtdb.node.supervise import own_node_folder

        return config.xtdb.url is not None or own_node_folder(config.home).running() is not None

    def open(self, config: Config, *, notify: Notify, lazy: bool = False) -> JournaledStore:
        """See `StoreKind.open`: the local copy, so that no request waits for the database."""
        return open_copy(config, notify=notify, lazy=lazy)

    def open_whole(self, config: Config) -> XtdbStore:
        """See `StoreKind.open_whole`."""
        return open_database(config)

    def place(self, config: Config, where: str) -> StorePlace:
        """See `StoreKind.place`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.xtdb.place import XtdbPlace

        return XtdbPlace.at(config, where)

    def describe_replacement(self) -> str:
        """See `StoreKind.describe_replacement`."""
        return (
            "and a new copy is made from what XTDB has. What still waited for XTDB is in the old "
            "one alone"
        )

    def findings(self, config: Config) -> Iterator[Finding]:
        """See `StoreKind.findings`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.xtdb.checks import check_journal, check_xtdb

        yield check_xtdb(config)
        yield check_journal(config)

    def check_settled(self, config: Config) -> None:
        """See `StoreKind.check_settled`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.xtdb.journal.journal import read_backlog

        if entries := read_backlog(copy_file(config)).entries:
            raise StoreUnavailable(
                f"commits are still to go to XTDB ({entries}): start it (`foredeck xtdb up`), "
                "let Pi run for a moment, and try again"
            )

    def erase(
        self, config: Config, ids: Collection[str], blobs: Collection[str], looked: Looked
    ) -> None:
        """See `StoreKind.erase`: out of the database, then out of the local copy."""
        busy_ms = config.sqlite.busy_timeout_ms
        with closing(open_sqlite(copy_file(config), busy_timeout_ms=busy_ms)) as copy:
            # Checked before the database is touched, and again by the copy, under its lock.
            copy.check_unused(looked, ids, blobs)
            with closing(open_database(config)) as database:
                database.erase(ids, blobs)
            copy.erase(ids, blobs, looked)

    def other_blobs(self, config: Config, known: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """See `StoreKind.other_blobs`: those that the local copy does not have."""
        with closing(open_database(config)) as database:
            absent = [digest for digest in digests_of(database) if digest not in known]
            for portion in portions(absent, _PORTION):
                yield from database.blobs(portion).items()

    def finish_erasing(self, config: Config) -> list[str]:
        """See `StoreKind.finish_erasing`: of a node of foredeck's own all is written again."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.xtdb.node.compacting import compact
        from foredeck.xtdb.node.runtime import find_runtime
        from foredeck.xtdb.node.supervise import own_node_folder

        with closing(open_sqlite(copy_file(config))) as copy:
            copy.vacuum()
        if config.xtdb.url is None and config.xtdb.topology != "memory":
            compact(own_node_folder(config.home), find_runtime(config.home))
        return still_to_do(config)

    def back_up(
        self, config: Config, target: Path, report: Report, *, verify: bool
    ) -> BackupReport:
        """See `StoreKind.back_up`: log and documents of the node in the state folder."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.xtdb.commands.backup import back_up_node, waiting_hint

        summary, found, left = back_up_node(config, target, report, verify=verify)
        return BackupReport(
            target,
            {"file": summary.files},
            summary.bytes,
            summary.time_ms,
            verified=found.sha256 if found else None,
            hints=(waiting_hint(left),) if left else (),
        )

    def restore(self, config: Config, source: Path, report: Report, *, force: bool) -> BackupReport:
        """See `StoreKind.restore`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.xtdb.commands.backup import REBUILT, restore_node

        summary, data, kept = restore_node(config, source, report, force=force)
        counts, time_ms = {"file": summary.files}, summary.time_ms
        return BackupReport(data, counts, summary.bytes, time_ms, kept=kept, hints=(REBUILT,))

    def empty_stores(self) -> AbstractContextManager[Settings]:
        """See `StoreKind.empty_stores`: one node in memory for all of them."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.xtdb.scratch import stores_in_memory

        return stores_in_memory()

    def deliver_and_compare(self, config: Config) -> DeliveredCopy:
        """See `StoreKind.deliver_and_compare`."""
        # Not at the top: only commands need it, an engine starts without.
        from foredeck.xtdb.delivery import deliver_and_compare

        return deliver_and_compare(config)


_PORTION = 200


def still_to_do(config: Config) -> list[str]:
    """What of an erasure foredeck cannot do on a database that it does not run alone."""
    again = "run the same command on every other machine that uses it, for its copy and its index"
    if config.xtdb.url is not None:
        return [
            f"XTDB at {config.xtdb.url} is not foredeck's to restart. It keeps what was evicted "
            "in its files until they are compacted: stop each of its nodes, compact the RocksDB "
            "of its log and documents, delete its index, and start it again. Then " + again + "."
        ]
    if config.xtdb.topology == "postgres":
        return [
            "Postgres keeps what was evicted until its table is written again, and in its "
            "write-ahead log and backups: run `VACUUM FULL tx_events`. Then " + again + "."
        ]
    if config.xtdb.topology == "kafka":
        return [
            "Kafka keeps what was evicted in its topics until they are compacted: see to that, and "
            "to its backups. Then " + again + "."
        ]
    return []


KIND = XtdbKind()

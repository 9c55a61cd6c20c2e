"""`foredeck xtdb backup` and `restore`."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foredeck.cli.output import print_json
from foredeck.cli.progress import Progress
from foredeck.config import Config
from foredeck.errors import Corrupt, StoreUnavailable
from foredeck.model.figures import counted, short_count, when
from foredeck.store.copying import Totals, compare
from foredeck.store.kind import Report
from foredeck.xtdb.commands.delivering import deliver_first, settled_node
from foredeck.xtdb.database.adapter import XtdbStore, open_xtdb
from foredeck.xtdb.delivery import follow_anew, waiting
from foredeck.xtdb.node.backup import BackupSummary, back_up, restore
from foredeck.xtdb.node.folder import NodeFolder
from foredeck.xtdb.node.process import private_node, start, stop
from foredeck.xtdb.node.runtime import find_runtime, how_to_start
from foredeck.xtdb.node.supervise import own_node_folder
from foredeck.xtdb.opening import copy_file

_COUNTS = ("transactions", "objects", "versions", "blobs")
REBUILT = "`foredeck xtdb up` rebuilds the index from them."
"""What is to be said of log and documents that were restored."""
_INDEXING_MS = 600_000
"""How long a restored node may take to index its log."""

_ELSEWHERE = {
    "memory": "this node keeps everything in memory: there is nothing that could be backed up",
    "postgres": "log and documents of this node are in Postgres: `pg_dump --format=custom` backs "
    "them up while everything runs, `pg_restore` puts them back; then delete the folder {index} "
    "on every machine, it is rebuilt. `foredeck migrate xtdb sqlite:FILE` copies this store alone",
    "kafka": "log and documents of this node are in Kafka's topics, whose replicas (and "
    "MirrorMaker) are the backup. `foredeck migrate xtdb sqlite:FILE` copies this store alone",
}


def _check_is_here(config: Config) -> None:
    """Raise `StoreUnavailable` where log and documents are not in this state folder."""

    if config.xtdb.url is not None:
        raise StoreUnavailable(
            f"the server at {config.xtdb.url} is not foredeck's own: back it up where it runs, or "
            "copy this store alone, with `foredeck migrate xtdb sqlite:FILE`"
        )
    folder, node = own_node_folder(config.home), settled_node(config)
    topology = config.xtdb.topology if node is None else node.topology
    if topology in _ELSEWHERE:
        raise StoreUnavailable(_ELSEWHERE[topology].format(index=folder.data / "index"))


def back_up_node(
    config: Config, file: Path, report: Report, *, verify: bool
) -> tuple[BackupSummary, Totals | None, int]:
    """Back up the node of the state folder: what was written, what was compared, how many
    transactions of this machine still wait and are not in it."""

    _check_is_here(config)
    folder = own_node_folder(config.home)
    if not folder.data.is_dir():
        raise StoreUnavailable(
            f"there is nothing to back up: no node has run here; {how_to_start(config.home)}"
        )
    left = _delivered(config)
    summary = back_up(folder, file, lambda name: report(1, name))
    return summary, _verified(file, config, report) if verify else None, left


def run_backup(args: Namespace, config: Config) -> int:
    """`foredeck xtdb backup`."""
    target = args.file.absolute()
    with Progress("backing up, step") as progress:
        summary, found, left = back_up_node(config, target, progress.advance, verify=args.verify)
    report: dict[str, Any] = {"file": target, **asdict(summary), "waiting": left}
    if found is not None:
        report["verified"] = asdict(found)
    if args.json:
        print_json(report)
        return 0
    until = "" if summary.tx_id is None else f", up to transaction {summary.tx_id}"
    print(
        f"{target}: log and documents{until}, {counted(summary.files, 'file')}, "
        f"{short_count(summary.bytes)} bytes. Only you can read it; keep it so."
    )
    if found is not None:
        counts = ", ".join(f"{report['verified'][name]:,} {name}" for name in _COUNTS)
        print(f"Restored and compared: {counts} are equal; SHA-256 {found.sha256}")
    if left:
        print(waiting_hint(left))
    return 0


def waiting_hint(left: int) -> str:
    """What is to be said of transactions that a backup does not have."""
    return (
        f"{counted(left, 'transaction')} of this machine still waits for XTDB and is not in it: "
        "`foredeck xtdb sync` delivers, then back up again."
    )


def _delivered(config: Config) -> int:
    """Bring what waits to a node that runs; how much waits still. None is started for it."""

    if own_node_folder(config.home).running() is not None:
        with suppress(StoreUnavailable):
            deliver_first(config)
    return waiting(config)


def _verified(backup: Path, config: Config, report: Report) -> Totals:
    """Restore into a temporary folder and compare with what is here. Raises `Corrupt`."""

    def opened(node: NodeFolder) -> AbstractContextManager[XtdbStore]:
        url = start(node, runtime, topology=config.xtdb.topology)[0].url
        namespace = config.xtdb.namespace
        return closing(
            open_xtdb(url, token=node.token(), namespace=namespace, timeout_ms=_INDEXING_MS)
        )

    runtime = find_runtime(config.home)
    own = own_node_folder(config.home)
    ran_before = own.running() is not None
    with tempfile.TemporaryDirectory(prefix="verifying-", dir=own.root) as name:
        restore(backup, NodeFolder(Path(name)), progress=lambda file: report(1, file))
        try:
            with (
                private_node(Path(name), runtime, "rocksdb") as copy,
                opened(own) as here,
                opened(copy) as restored,
            ):
                found = compare(here, restored, lambda: report(1, "verifying"))
        finally:
            if not ran_before:
                stop(own)
    if not found.equal:
        raise Corrupt(f"{backup} is not a copy of what is here: {found.differs} differs")
    return found.copy


def restore_node(
    config: Config, file: Path, report: Report, *, force: bool
) -> tuple[BackupSummary, Path, Path | None]:
    """Restore a backup into the state folder: what it holds, where it is, where older data is."""

    _check_is_here(config)
    folder = own_node_folder(config.home)
    summary, aside = restore(file, folder, force=force, progress=lambda name: report(1, name))
    # A backup holds all namespaces.
    follow_anew(copy_file(config).parent.glob("own-*.db"))
    return summary, folder.data, aside


def run_restore(args: Namespace, config: Config) -> int:
    """`foredeck xtdb restore`."""
    with Progress("restoring, file") as progress:
        summary, data, aside = restore_node(config, args.file, progress.advance, force=args.force)
    if args.json:
        print_json({"data": data, **asdict(summary), "moved_aside": aside})
    else:
        print(
            f"{data}: {counted(summary.files, 'file')} of the backup of "
            f"{when(summary.time_ms)} are in place.\n{REBUILT}"
        )
        if aside is not None:
            print(f"What was there is in {aside}: delete it when you do not need it.")
    return 0

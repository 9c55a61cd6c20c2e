"""What commands do with a store in XTDB: deliver, compare, check, back up, erase."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from foredeck.cli.output import Progress
from foredeck.config import Config
from foredeck.errors import ForedeckError, StoreUnavailable
from foredeck.finding import Finding, note, ok, problem
from foredeck.model.figures import counted
from foredeck.store import backup as sqlite_backup
from foredeck.store.backup import BackupReport, Report
from foredeck.store.copying import NotEmpty, compare, copy, count_of, verified
from foredeck.store.place import CopyComparison
from foredeck.store.store import open_sqlite
from foredeck_xtdb.journal import Backlog, DeliveryQueue, opened_journal, read_backlog
from foredeck_xtdb.link import copy_file, open_database
from foredeck_xtdb.local_copy import XtdbRemote, open_copy, remote_of
from foredeck_xtdb.node import NodeFolder, NodeInfo, await_settled, own_node_folder, start, stop
from foredeck_xtdb.runtime import Runtime, find_runtime, how_to_start, java_options

if TYPE_CHECKING:
    from foredeck_xtdb.database.adapter import Database

Advance = Callable[[int], object]
"""Called with the number of transactions that were delivered since the last time."""

_STUCK_SECONDS, _AWAY_SECONDS = 60.0, 10.0
"""Seconds to wait without any delivery, while XTDB answers and while it is away."""
_POLL = 0.05
_BUSY_MS = 30_000


def waiting(config: Config) -> int:
    backlog = read_backlog(copy_file(config))
    return backlog.entries + backlog.quarantined


def follow_anew(copies: Iterable[Path]) -> None:
    """Lets local copies read all of XTDB's changes again."""
    for file in copies:
        if file.is_file():
            with opened_journal(file, _BUSY_MS) as journal:
                journal.missing.forget_position()


def deliver(config: Config, advance: Advance = lambda _count: None) -> Backlog:
    """Delivers all that waits now, and returns what is left. Raises `StoreUnavailable` if XTDB does
    not take it."""
    if not waiting(config):
        return read_backlog(copy_file(config))
    with opened_journal(copy_file(config), _BUSY_MS) as journal:
        journal.queue.release_quarantined()
        with closing(open_copy(config)) as store:
            _await(remote_of(store), journal.queue, advance)
        return journal.queue.backlog()


def _await(remote: XtdbRemote, queue: DeliveryQueue, advance: Advance) -> None:
    goal = queue.newest()
    before, since = queue.waiting_up_to(goal), time.monotonic()
    while left := queue.waiting_up_to(goal):
        if left < before:
            since = time.monotonic()
        advance(before - left)
        before = left
        away = remote.away_because
        if time.monotonic() - since > (_AWAY_SECONDS if away else _STUCK_SECONDS):
            raise StoreUnavailable(
                f"{left} transactions wait in the local copy and XTDB does not take them"
                f"{away and f' ({away})'}: `foredeck xtdb status` shows why, and "
                "`foredeck xtdb sync` tries again"
            )
        time.sleep(_POLL)
    advance(before)


def deliver_and_compare(config: Config) -> CopyComparison:
    """Delivers, then compares XTDB with the local copy; no other process may write. Raises
    `StoreUnavailable`, `Corrupt`."""
    left = deliver(config)
    with (
        closing(open_sqlite(copy_file(config), busy_timeout_ms=_BUSY_MS)) as copy,
        closing(open_database(config)) as database,
    ):
        found = compare(database, copy)
        extra = count_of(database) - count_of(copy)
    held = found.original
    return CopyComparison(
        left.quarantined,
        left.reason,
        None if found.equal else found.differs or "a count",
        extra,
        f"XTDB holds {held.transactions} transactions: {held.objects} objects in "
        f"{held.versions} versions and {held.blobs} blobs",
    )


def settled_node(config: Config) -> NodeInfo | None:
    """The running node, after waiting for one that starts or stops. Raises `StoreUnavailable`."""
    return await_settled(own_node_folder(config.home), _say_that_it_waits)


def _say_that_it_waits() -> None:
    print("Waiting for the XTDB node, which is being started or stopped.", file=sys.stderr)


def deliver_first(config: Config) -> tuple[int, Backlog]:
    """Delivers with progress; returns how many transactions, and what is left. Raises
    `StoreUnavailable`."""
    if config.xtdb.url is None:
        settled_node(config)
    count = waiting(config)
    with Progress("delivering what waits for XTDB, transaction", total=count) as progress:
        left = deliver(config, progress.advance)
    return count, left


# Copying, what is reported, and empty stores

_PATIENCE_MS = 60_000
"""How long one request of a copy may take: only the user who watches it waits."""


def open_delivered(config: Config) -> Database:
    """The database, once everything in the local copy is delivered. Raises `StoreUnavailable`."""
    deliver_first(_patient(config))
    return open_database(_patient(config))


def _patient(config: Config) -> Config:
    xtdb = config.xtdb.model_copy(update={"timeout_ms": _PATIENCE_MS})
    return config.model_copy(update={"xtdb": xtdb})


def check_xtdb(config: Config) -> Finding:
    """Checks XTDB without starting a node."""
    try:
        if config.xtdb.url is None and own_node_folder(config.home).running() is None:
            java = find_runtime(config.home).java
            return ok("store", f"XTDB, installed, on Java {java.version}; started at first use")
        with closing(open_database(config)) as store:
            store.latest()
    except ForedeckError as error:
        return problem(
            "store", str(error), "`foredeck xtdb status` and `foredeck xtdb logs` show more."
        )
    return ok("store", f"XTDB {config.xtdb.url or 'of our own'} answers")


def check_journal(config: Config) -> Finding:
    backlog = read_backlog(copy_file(config))
    if backlog.quarantined:
        return problem(
            "journal",
            f"XTDB has refused {backlog.quarantined} transactions: {backlog.reason}",
            "They are quarantined in the local copy, and tried again when Pi is started next.",
        )
    if backlog.entries == 0:
        return ok("journal", "nothing waits for XTDB")
    text = f"{counted(backlog.entries, 'transaction')} of {backlog.bytes:,} bytes wait for XTDB"
    if backlog.entries * 2 > config.xtdb.journal_entries:
        return note("journal", text, "`foredeck xtdb status` shows whether XTDB runs.")
    return ok("journal", text)


# Backups: one SQLite file, which either kind of store can restore

_DRAFT = "backup-"


def back_up(config: Config, target: Path, report: Report, *, verify: bool) -> BackupReport:
    """Delivers what waits, then writes the configured store into `target`.

    Raises `StoreUnavailable`; an earlier backup stays then.
    """
    folder, is_own = own_node_folder(config.home), _keeps_its_data_here(config)
    if is_own and not folder.data.is_dir() and not waiting(config):
        raise StoreUnavailable(
            f"there is nothing to back up: no node has run here; {how_to_start(config.home)}"
        )
    with (
        TemporaryDirectory(prefix=_DRAFT, dir=config.home) as folder_name,
        closing(open_delivered(config)) as database,
    ):
        draft = Path(folder_name) / "store.db"
        with closing(open_sqlite(draft)) as store:
            copy(database, store, lambda: report(1, "copying"))
        made = sqlite_backup.back_up(draft, target, report)
        if verify:
            with sqlite_backup.opened_backup(target) as backup:
                digest = verified(database, backup, target, lambda: report(1, "verifying"))
            made = replace(made, verified=digest)
    if left := waiting(config):
        hint = (
            f"{counted(left, 'transaction')} of this machine still waits for XTDB and is not in "
            "it: `foredeck xtdb sync` delivers, then back up again."
        )
        made = replace(made, hints=(hint,))
    return made


def restore(config: Config, source: Path, report: Report) -> BackupReport:
    """Brings a backup into the configured store, which must be empty.

    Raises `StoreUnavailable`, and `Corrupt` for a damaged backup.
    """
    with TemporaryDirectory(prefix=_DRAFT, dir=config.home) as folder_name:
        draft = Path(folder_name) / "store.db"
        sqlite_backup.restore(source, draft, force=False, report=report)
        with (
            closing(open_sqlite(draft)) as backup,
            closing(open_database(_patient(config))) as database,
        ):
            try:
                copy(backup, database, lambda: report(1, "copying"))
            except NotEmpty as error:
                raise StoreUnavailable(
                    f"XTDB holds a store already: {other_place(config)} ({error})"
                ) from error
            finally:
                follow_anew([copy_file(config)])
    where = own_node_folder(config.home).data if _keeps_its_data_here(config) else source
    return replace(sqlite_backup.contents_of(source), file=where)


def other_place(config: Config) -> str:
    """How to restore beside what is there."""
    if not _keeps_its_data_here(config):
        return "name another xtdb.namespace"
    data = own_node_folder(config.home).data
    return f"`foredeck xtdb down`, move {data} away, then restore"


def _keeps_its_data_here(config: Config) -> bool:
    return config.xtdb.url is None and config.xtdb.topology == "rocksdb"


# What an erasure has to leave nothing of

_ROCKSDB = ("log", "index")
"""Folders of RocksDB in a node's data."""
_LONGEST_S = 3600.0

_KEPT = {
    "postgres": "Postgres keeps what was evicted until its table is written again, and in its "
    "write-ahead log and backups: run `VACUUM FULL tx_events`.",
    "kafka": "Kafka keeps what was evicted in its topics until they are compacted: see to that, "
    "and to its backups.",
}
"""What a database keeps that foredeck cannot remove, by topology."""

# The lowest tables are left alone by a usual compaction where nothing lies above them.
_PROGRAM = """
(require 'xtdb.rocksdb)
(import '(org.rocksdb CompactRangeOptions CompactRangeOptions$BottommostLevelCompaction))
(doseq [folder *command-line-args*]
  (with-open [store (xtdb.rocksdb/->kv-store {:db-dir (.toPath (java.io.File. folder))})
              options (.setBottommostLevelCompaction
                       (CompactRangeOptions.) CompactRangeOptions$BottommostLevelCompaction/kForce)]
    (let [db (:db store)]
      (.compactRange db (.getDefaultColumnFamily db) nil nil options))))
"""


def still_to_do(config: Config) -> list[str]:
    kept = _KEPT.get(config.xtdb.topology)
    if config.xtdb.url is not None:
        kept = (
            f"XTDB at {config.xtdb.url} is not foredeck's to restart. It keeps what was evicted "
            "in its files until they are compacted: stop each of its nodes, compact the RocksDB "
            "of its log and documents, delete its index, and start it again."
        )
    again = "run the same command on every other machine that uses it, for its copy and its index"
    return [] if kept is None else [f"{kept} Then {again}."]


def compact_node(home: Path) -> None:
    """Rewrites a stopped node's files, since RocksDB keeps deleted data. Raises
    `StoreUnavailable`."""
    folder, runtime = own_node_folder(home), find_runtime(home)
    before = stop(folder)
    try:
        with folder.kept_stopped() as is_stopped:
            if not is_stopped:
                raise StoreUnavailable("another process started the XTDB node: try again")
            found = [path for name in _ROCKSDB if (path := folder.data / name).is_dir()]
            _compact(found, folder, runtime)
    finally:
        if before is not None:
            start(folder, runtime, topology=before.topology)


def _compact(stores: list[Path], folder: NodeFolder, runtime: Runtime) -> None:
    folder.tmp.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [runtime.java.path, *java_options(runtime, folder.tmp), "clojure.main", "-"]
    try:
        done = subprocess.run(
            [*command, *map(str, stores)],
            input=_PROGRAM.encode(),
            capture_output=True,
            timeout=_LONGEST_S,
            cwd=folder.root,
        )
    except subprocess.TimeoutExpired as error:
        raise StoreUnavailable("compacting XTDB's files takes too long") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise StoreUnavailable(f"XTDB's files could not be compacted: {' '.join(said)}")

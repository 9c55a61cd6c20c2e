"""What commands do with a store in XTDB: deliver, compare, migrate, erase, check."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from foredeck.cli.output import Progress
from foredeck.config import Config, load_config
from foredeck.errors import ConfigError, ForedeckError, StoreUnavailable
from foredeck.finding import Finding, note, ok, problem
from foredeck.model.figures import counted
from foredeck.store.copying import compare, count_of
from foredeck.store.kind import PENDING_PURGE, DeliveredCopy, Settings
from foredeck.store.protocol import Copyable, ScanMark, digests_of, portions
from foredeck.store.store import Store, open_sqlite
from foredeck_xtdb.journal import Backlog, DeliveryQueue, opened_journal, read_backlog
from foredeck_xtdb.link import copy_file, open_database
from foredeck_xtdb.local_copy import XtdbRemote, open_copy, remote_of
from foredeck_xtdb.node import (
    NodeFolder,
    NodeInfo,
    await_settled,
    own_node_folder,
    private_node,
    start,
    stop,
)
from foredeck_xtdb.runtime import Runtime, find_runtime, java_options

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


def deliver_and_compare(config: Config) -> DeliveredCopy:
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
    return DeliveredCopy(
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


# An address, what is reported, and empty stores

_PATIENCE_MS = 60_000
"""How long one request of a copy may take: only the user who watches it waits."""


@dataclass(frozen=True, slots=True)
class XtdbPlace:
    """A store in XTDB as a place, with its configuration."""

    config: Config
    name: ClassVar[str] = "the store"
    is_one_file: ClassVar[bool] = False

    @classmethod
    def at(cls, config: Config, where: str) -> XtdbPlace:
        """The store at an address, or the configured one. Raises `ConfigError`."""
        if where and not where.startswith(("http://", "https://")):
            raise ConfigError(f"{where!r}: an address begins with http:// or https://")
        xtdb = config.xtdb.model_copy(update={"url": where or config.xtdb.url})
        return cls(config.model_copy(update={"xtdb": xtdb, "store": "xtdb"}))

    def describe(self) -> str:
        where = self.config.xtdb.url or str(self.config.home / "xtdb")
        return f"xtdb:{where.rstrip('/')} ({self.config.xtdb.namespace})"

    def open(self, *, create: bool) -> Database:  # noqa: ARG002
        """The database, once everything in the local copy is delivered."""
        deliver_first(self._patient)
        return open_database(self._patient)

    def open_now(self) -> Database:
        """The database as it is. Raises `StoreUnavailable`."""
        return open_database(self._patient)

    @property
    def _patient(self) -> Config:
        xtdb = self.config.xtdb.model_copy(update={"timeout_ms": _PATIENCE_MS})
        return self.config.model_copy(update={"xtdb": xtdb})

    def after_copy(self) -> None:
        """Makes the local copy read everything anew."""
        follow_anew([copy_file(self.config)])

    @property
    def pending(self) -> Path:
        return self.config.home / PENDING_PURGE

    def open_local(self) -> Store:
        return open_copy(self.config, lazy=True)

    def _open_copy(self) -> Store:
        busy_ms = self.config.sqlite.busy_timeout_ms
        return open_sqlite(copy_file(self.config), busy_timeout_ms=busy_ms)

    def check_settled(self) -> None:
        if entries := read_backlog(copy_file(self.config)).entries:
            raise StoreUnavailable(
                f"commits are still to go to XTDB ({entries}): `foredeck xtdb sync` delivers them, "
                "then try again"
            )

    def other_blobs(self, known: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """Blobs that the local copy does not have."""
        with closing(open_database(self.config)) as database:
            absent = [digest for digest in digests_of(database) if digest not in known]
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
        with closing(self._open_copy()) as copy:
            copy.vacuum()
        config = self.config
        if config.xtdb.url is None and config.xtdb.topology != "memory":
            _compact_node(own_node_folder(config.home), find_runtime(config.home))
        return _still_to_do(config)

    def all_parts(self) -> Iterator[Copyable]:
        yield open_database(self.config)
        yield self._open_copy()


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


@contextmanager
def stores_in_memory() -> Iterator[Settings]:
    """One node in memory, with a namespace for each store. Raises `StoreUnavailable` if none is
    installed."""
    # Only where the node is installed is taken from the user's own configuration.
    installed = load_config(environ=os.environ).config.home
    with (
        tempfile.TemporaryDirectory(prefix="foredeck-replay-xtdb-") as root,
        private_node(Path(root) / "node", find_runtime(installed)) as node,
    ):
        running = node.running()
        assert running is not None
        shared = (
            "store=xtdb",
            f"xtdb.url={running.url}",
            f"xtdb.token_file={node.token_file}",
            "xtdb.timeout_ms=60000",
        )
        yield lambda number: (*shared, f"xtdb.namespace=session-{number}")


# What an erasure has to leave nothing of

_PORTION = 200
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


def _still_to_do(config: Config) -> list[str]:
    kept = _KEPT.get(config.xtdb.topology)
    if config.xtdb.url is not None:
        kept = (
            f"XTDB at {config.xtdb.url} is not foredeck's to restart. It keeps what was evicted "
            "in its files until they are compacted: stop each of its nodes, compact the RocksDB "
            "of its log and documents, delete its index, and start it again."
        )
    again = "run the same command on every other machine that uses it, for its copy and its index"
    return [] if kept is None else [f"{kept} Then {again}."]


def _compact_node(folder: NodeFolder, runtime: Runtime) -> None:
    """Rewrites a stopped node's files, since RocksDB keeps deleted data. Raises
    `StoreUnavailable`."""
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

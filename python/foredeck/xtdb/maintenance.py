"""What commands do with a store in XTDB: bring to it what waits in the local copy, and compare the
two; its address for `foredeck migrate` and for erasing, what `foredeck doctor` reports, empty
stores for a replay.
"""

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
from foredeck.store.protocol import ScanMark, Store, digests_of, portions
from foredeck.store.sqlite.adapter import SqliteStore, open_sqlite
from foredeck.xtdb.journal import Backlog, DeliveryQueue, Journal, read_backlog
from foredeck.xtdb.link import copy_file, open_database
from foredeck.xtdb.local_copy import open_copy
from foredeck.xtdb.node import (
    NodeFolder,
    NodeInfo,
    await_settled,
    own_node_folder,
    private_node,
    start,
    stop,
)
from foredeck.xtdb.runtime import Runtime, find_runtime, java_options

if TYPE_CHECKING:
    from foredeck.xtdb.database.adapter import XtdbStore
    from foredeck.xtdb.local_copy import JournaledStore

Advance = Callable[[int], object]
"""Called with the number of transactions that were delivered since the last time."""

_STUCK_SECONDS, _AWAY_SECONDS = 60.0, 10.0
"""How long to wait without any delivery, while XTDB answers and while it does not."""
_POLL = 0.05
_BUSY_MS = 30_000


def waiting(config: Config) -> int:
    """How many transactions wait in the local copy, those that XTDB has refused among them."""
    backlog = read_backlog(copy_file(config))
    return backlog.entries + backlog.quarantined


def follow_anew(copies: Iterable[Path]) -> None:
    """Let local copies read all of XTDB's changes again, since others than their engines wrote
    there directly."""
    for file in copies:
        if file.is_file():
            with closing(Journal(file, busy_timeout_ms=_BUSY_MS)) as journal:
                journal.missing.forget_position()


def deliver(config: Config, advance: Advance = lambda _count: None) -> Backlog:
    """Bring all that waits at this moment to XTDB, and try again what it has refused before.

    Starts foredeck's own node if need be; where an engine is at work on the same copy, that one
    delivers. Returns what is left then. Raises `StoreUnavailable`, with the number that
    still waits and the reason, where XTDB does not take it.
    """
    if not waiting(config):
        return read_backlog(copy_file(config))
    with closing(Journal(copy_file(config), busy_timeout_ms=_BUSY_MS)) as journal:
        journal.queue.release_quarantined()
        with closing(open_copy(config)) as store:
            _await(store, journal.queue, advance)
        return journal.queue.backlog()


def _await(store: JournaledStore, queue: DeliveryQueue, advance: Advance) -> None:
    goal = queue.newest()
    before, since = queue.waiting_up_to(goal), time.monotonic()
    while left := queue.waiting_up_to(goal):
        if left < before:
            since = time.monotonic()
        advance(before - left)
        before = left
        away = store.away_because
        if time.monotonic() - since > (_AWAY_SECONDS if away else _STUCK_SECONDS):
            raise StoreUnavailable(
                f"{left} transactions wait in the local copy and XTDB does not take them"
                f"{away and f' ({away})'}: `foredeck xtdb status` shows why, and "
                "`foredeck xtdb sync` tries again"
            )
        time.sleep(_POLL)
    advance(before)


def deliver_and_compare(config: Config) -> DeliveredCopy:
    """Deliver, then read everything from XTDB and from the local copy, and compare.

    For a store that no other process writes to. Raises `StoreUnavailable`, `Corrupt`.
    """
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
    """The node of the state folder, None where none runs. It waits, and says so, for one that is
    being started or stopped. Raises `StoreUnavailable` where that does not end."""
    return await_settled(own_node_folder(config.home), _say_that_it_waits)


def _say_that_it_waits() -> None:
    print("Waiting for the XTDB node, which is being started or stopped.", file=sys.stderr)


def deliver_first(config: Config) -> tuple[int, Backlog]:
    """Deliver, with progress: how many transactions, and what is left.

    Raises `StoreUnavailable` where XTDB does not take them.
    """
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
    """See `foredeck.store.kind.StorePlace`. `config` is that of the store at the address."""

    config: Config
    name: ClassVar[str] = "the store"
    is_one_file: ClassVar[bool] = False

    @classmethod
    def at(cls, config: Config, where: str) -> XtdbPlace:
        """The store at a server's address, or the configured one where that is empty. Raises
        `ConfigError`."""
        if where and not where.startswith(("http://", "https://")):
            raise ConfigError(f"{where!r}: an address begins with http:// or https://")
        xtdb = config.xtdb.model_copy(update={"url": where or config.xtdb.url})
        return cls(config.model_copy(update={"xtdb": xtdb, "store": "xtdb"}))

    def describe(self) -> str:
        """See `StorePlace.describe`."""
        where = self.config.xtdb.url or str(self.config.home / "xtdb")
        return f"xtdb:{where.rstrip('/')} ({self.config.xtdb.namespace})"

    def open(self, *, create: bool) -> XtdbStore:  # noqa: ARG002
        """See `StorePlace.open`: the database, once it has what waits for it in the local copy."""
        deliver_first(self._patient)
        return open_database(self._patient)

    def open_now(self) -> XtdbStore:
        """The database as it is, without what waits for it. Raises `StoreUnavailable`."""
        return open_database(self._patient)

    @property
    def _patient(self) -> Config:
        xtdb = self.config.xtdb.model_copy(update={"timeout_ms": _PATIENCE_MS})
        return self.config.model_copy(update={"xtdb": xtdb})

    def after_copy(self) -> None:
        """See `StorePlace.after_copy`: the local copy does not know what has come."""
        follow_anew([copy_file(self.config)])

    @property
    def pending(self) -> Path:
        """See `StorePlace.pending`."""
        return self.config.home / PENDING_PURGE

    def open_local(self) -> JournaledStore:
        """See `StorePlace.open_local`."""
        return open_copy(self.config, lazy=True)

    def _open_copy(self) -> SqliteStore:
        busy_ms = self.config.sqlite.busy_timeout_ms
        return open_sqlite(copy_file(self.config), busy_timeout_ms=busy_ms)

    def check_settled(self) -> None:
        """See `StorePlace.check_settled`."""
        if entries := read_backlog(copy_file(self.config)).entries:
            raise StoreUnavailable(
                f"commits are still to go to XTDB ({entries}): `foredeck xtdb sync` delivers them, "
                "then try again"
            )

    def other_blobs(self, known: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """See `StorePlace.other_blobs`: those that the local copy does not have."""
        with closing(open_database(self.config)) as database:
            absent = [digest for digest in digests_of(database) if digest not in known]
            for portion in portions(absent, _PORTION):
                yield from database.blobs(portion).items()

    def erase(self, ids: Collection[str], blobs: Collection[str], scanned: ScanMark) -> None:
        """See `StorePlace.erase`."""
        # The local copy last: killed in between, it still has that by which the next attempt finds
        # what is to go. The other way round the database would keep what nobody knows of any more.
        with closing(self._open_copy()) as copy:
            # Checked before the database is touched, and again by the copy, under its lock.
            copy.check_unused(scanned, ids, blobs)
            with closing(open_database(self.config)) as database:
                database.erase(ids, blobs)
            copy.erase(ids, blobs, scanned)

    def finish(self) -> list[str]:
        """See `StorePlace.finish`: of a node of foredeck's own all is written again."""
        with closing(self._open_copy()) as copy:
            copy.vacuum()
        config = self.config
        if config.xtdb.url is None and config.xtdb.topology != "memory":
            _compact_node(own_node_folder(config.home), find_runtime(config.home))
        return _still_to_do(config)

    def all_parts(self) -> Iterator[Store]:
        """See `StorePlace.all_parts`."""
        yield open_database(self.config)
        yield self._open_copy()


def check_xtdb(config: Config) -> Finding:
    """A node of foredeck's own is not started for this."""
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
    """What waits for XTDB in the local copy."""
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
    """One node in memory, with a namespace for each store; it ends with the block, or with this
    process. Raises `StoreUnavailable` where no node is installed."""
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
"""What a database keeps that foredeck does not run, by its topology, and how it is removed."""

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
    """What of an erasure foredeck cannot do on a database that it does not run alone."""
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
    """Write log, documents and index of a node again without what was evicted: RocksDB marks that
    as deleted, and keeps it until its files are written again. The node is stopped for that, and
    started again where it ran. Raises `StoreUnavailable`."""
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

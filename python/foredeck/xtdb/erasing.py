"""Taking something out of XTDB and out of the local copy in front of it, for good."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from foredeck.config import Config
from foredeck.errors import StoreUnavailable
from foredeck.store.kind import PENDING_PURGE
from foredeck.store.protocol import ScanMark, Store, digests_of, portions
from foredeck.store.sqlite.adapter import SqliteStore, open_sqlite
from foredeck.xtdb.journal.journal import read_backlog
from foredeck.xtdb.journal.link import copy_file, open_database
from foredeck.xtdb.journal.store import JournaledStore, open_copy
from foredeck.xtdb.node.folder import NodeFolder
from foredeck.xtdb.node.process import own_node_folder, start, stop
from foredeck.xtdb.node.runtime import Runtime, find_runtime, java_options

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


@dataclass(frozen=True, slots=True)
class XtdbErasable:
    """See `foredeck.store.kind.ErasableStore`."""

    config: Config
    name: ClassVar[str] = "the store"
    is_one_file: ClassVar[bool] = False

    @property
    def pending(self) -> Path:
        """See `ErasableStore.pending`."""
        return self.config.home / PENDING_PURGE

    def open(self) -> JournaledStore:
        """See `ErasableStore.open`."""
        return open_copy(self.config, lazy=True)

    def _open_file(self) -> SqliteStore:
        busy_ms = self.config.sqlite.busy_timeout_ms
        return open_sqlite(copy_file(self.config), busy_timeout_ms=busy_ms)

    def check_settled(self) -> None:
        """See `ErasableStore.check_settled`."""
        if entries := read_backlog(copy_file(self.config)).entries:
            raise StoreUnavailable(
                f"commits are still to go to XTDB ({entries}): start it (`foredeck xtdb up`), "
                "let Pi run for a moment, and try again"
            )

    def other_blobs(self, known: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """See `ErasableStore.other_blobs`: those that the local copy does not have."""
        with closing(open_database(self.config)) as database:
            absent = [digest for digest in digests_of(database) if digest not in known]
            for portion in portions(absent, _PORTION):
                yield from database.blobs(portion).items()

    def erase(self, ids: Collection[str], blobs: Collection[str], scanned: ScanMark) -> None:
        """See `ErasableStore.erase`: out of the database, then out of the local copy."""
        with closing(self._open_file()) as copy:
            # Checked before the database is touched, and again by the copy, under its lock.
            copy.check_unused(scanned, ids, blobs)
            with closing(open_database(self.config)) as database:
                database.erase(ids, blobs)
            copy.erase(ids, blobs, scanned)

    def finish(self) -> list[str]:
        """See `ErasableStore.finish`: of a node of foredeck's own all is written again."""
        with closing(self._open_file()) as copy:
            copy.vacuum()
        config = self.config
        if config.xtdb.url is None and config.xtdb.topology != "memory":
            _compact_node(own_node_folder(config.home), find_runtime(config.home))
        return _still_to_do(config)

    def all_parts(self) -> Iterator[Store]:
        """See `ErasableStore.all_parts`."""
        yield open_database(self.config)
        yield self._open_file()


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
            shutil.rmtree(folder.data / "checkpoint", ignore_errors=True)  # of a killed backup
            found = [path for name in _ROCKSDB if (path := folder.data / name).is_dir()]
            _compact(found, folder, runtime)
    finally:
        if before is not None:
            start(folder, runtime, topology=before.topology)


def _compact(stores: list[Path], folder: NodeFolder, runtime: Runtime) -> None:
    folder.tmp.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [runtime.java.path, *java_options(runtime, folder), "clojure.main", "-"]
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

"""Taking out of a node's files for good what was evicted: RocksDB marks it as deleted, and keeps it
in its log and in tables of before until they are written again."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from foredeck.errors import StoreUnavailable
from foredeck.xtdb.node.folder import NodeFolder
from foredeck.xtdb.node.java_options import java_options
from foredeck.xtdb.node.process import start, stop
from foredeck.xtdb.node.runtime import Runtime

STORES = ("log", "index")
"""Folders of RocksDB in a node's data."""
LONGEST_S = 3600.0

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


def compact(folder: NodeFolder, runtime: Runtime) -> None:
    """Write log, documents and index of a node again without what was deleted. It is stopped for
    that, and started again where it ran. Raises `StoreUnavailable`."""
    before = stop(folder)
    try:
        with folder.kept_stopped() as is_stopped:
            if not is_stopped:
                raise StoreUnavailable("another process started the XTDB node: try again")
            shutil.rmtree(folder.data / "checkpoint", ignore_errors=True)  # of a killed backup
            _compact(
                [path for name in STORES if (path := folder.data / name).is_dir()], folder, runtime
            )
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
            timeout=LONGEST_S,
            cwd=folder.root,
        )
    except subprocess.TimeoutExpired as error:
        raise StoreUnavailable("compacting XTDB's files takes too long") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise StoreUnavailable(f"XTDB's files could not be compacted: {' '.join(said)}")

"""A client in a process of its own, so that a test can stop it with a signal.

usage: storm_client.py STORE FOLDER

Tracks all files of FOLDER. On each line of stdin, prints one JSON object: for each tracked path
the text of its newest version, null where it is deleted.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from pathlib import Path

from foredeck.model.documents import FileDocument
from foredeck.sources.disk import DiskSource
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.tracking import FileTracker, TrackerOptions
from foredeck.store.protocol import Batch
from foredeck.store.store import open_sqlite

EVERYTHING: set[str] = set()


def main(store_path: str, folder: str) -> None:
    store = open_sqlite(Path(store_path))
    disk = DiskSource(store, FilesystemMap("f" * 64, cwd=folder))
    work: queue.Queue[set[str] | None] = queue.Queue()
    # No audit: what is not told by an event or an overflow is not found.
    tracker = FileTracker(
        work.put, lambda: work.put(EVERYTHING), None, TrackerOptions(audit_s=10**6)
    )
    ids: dict[str, str] = {}

    def reconcile(targets: list[str]) -> None:
        documents = [s.document for s in disk.reconcile(targets) if s.document is not None]
        if documents:
            store.commit(Batch(puts=list(documents)))

    def state() -> dict[str, str | None]:
        documents = {path: store.get(id, FileDocument) for path, id in ids.items()}
        return {path: d.content if d else None for path, d in documents.items()}

    paths = sorted(str(p) for p in Path(folder).rglob("*") if p.is_file())
    snapshots = [disk.sight(path, "read") for path in paths]
    store.commit(Batch(puts=[s.document for s in snapshots if s.document is not None]))
    for snapshot in snapshots:
        ids[snapshot.path] = snapshot.object_id
        tracker.track(snapshot.object_id, snapshot.path)
    while tracker.differing(ids.values()):
        time.sleep(0.01)
    threading.Thread(target=lambda: [work.put(None) for _ in sys.stdin], daemon=True).start()
    while True:
        told = work.get()
        if told is None:
            print(json.dumps(state()), flush=True)
        else:
            reconcile(sorted(told) if told else list(ids.values()))


if __name__ == "__main__":
    main(*sys.argv[1:])

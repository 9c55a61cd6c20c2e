"""A folder, a store, and a source between them, for the tests of the sources."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from foredeck.model.documents import FileDocument
from foredeck.sources.disk import DiskSource
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.snapshots import FileSnapshot, Limits
from foredeck.store.protocol import Batch
from foredeck.store.store import Store

FILESYSTEM = "f" * 64


class Work:
    """A folder, a store, and a source between them."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder = folder
        self.store = store
        self.filesystems = FilesystemMap(FILESYSTEM, cwd=str(folder))
        self.disk = DiskSource(store, self.filesystems, Limits(max_file_bytes=64 * 1024))

    def write(self, name: str, content: str | bytes = "one\ntwo\n") -> str:
        """Write a file; returns its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def commit(self, *snapshots: FileSnapshot) -> list[FileDocument]:
        """Commit the documents of these snapshots; returns them."""
        documents = [s.document for s in snapshots if s.document is not None]
        if documents:
            self.store.commit(Batch(puts=list(documents)))
        return documents

    def read(self, name: str) -> FileSnapshot:
        """See a file as the tool `read` does, and commit what follows."""
        snapshot = self.disk.sight(name, "read")
        self.commit(snapshot)
        return snapshot

    def reconcile(self, targets: Iterable[str]) -> list[FileSnapshot]:
        """Reconcile, and commit what follows."""
        snapshots = self.disk.reconcile(targets)
        self.commit(*snapshots)
        return snapshots

    def stored(self, object_id: str) -> FileDocument:
        """The newest version of an object, with its content."""
        document = self.store.get(object_id, FileDocument)
        assert document is not None
        return document

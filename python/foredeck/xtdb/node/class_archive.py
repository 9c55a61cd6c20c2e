"""Makes the archive of classes that lets Java start a node in two thirds of the time.

A node is started on data of its own, does what nodes do, and writes down at its end which classes
it has loaded, ready to be used (AppCDS). The archive holds for the Java, and for the paths of the
jars, that it was made with. No node needs it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from foredeck.errors import StoreError
from foredeck.model.documents import Document, Provenance
from foredeck.store.protocol import Batch
from foredeck.xtdb.database.adapter import XtdbStore, open_xtdb
from foredeck.xtdb.node.folder import NodeFolder
from foredeck.xtdb.node.process import start
from foredeck.xtdb.node.runtime import Runtime

_END_SECONDS = 60.0
"""How long a node may take to write its archive: usually 3 s."""
_PROVENANCE = Provenance(origin="rehearsal", generator="tool")


def make_class_archive(runtime: Runtime, progress: Callable[[str], None]) -> None:
    """Make the archive of a runtime for its Java, unless it has one; other Javas' are removed.

    Where it cannot be made, `progress` is told why, and nodes start without it.
    """
    archive = runtime.class_archive
    if archive.is_file():
        return
    draft = archive.with_suffix(".new")
    try:
        # Under this name the next installation removes what a killed one leaves behind.
        with tempfile.TemporaryDirectory(prefix="building-", dir=runtime.folder.parent) as root:
            _rehearse(NodeFolder(Path(root)), replace(runtime, rehearses=draft))
        if not draft.is_file():
            raise StoreError("this Java comes without an archive of its own classes")
        with draft.open("rb") as written:
            # Java trusts its content: after a power loss it must be whole, or not be there.
            os.fsync(written.fileno())
        draft.rename(archive)
    except (StoreError, OSError, subprocess.TimeoutExpired) as error:
        draft.unlink(missing_ok=True)
        progress(f"no class archive could be made: {error}")
        return
    for other in set(archive.parent.glob("*.jsa")) - {archive}:
        other.unlink(missing_ok=True)
    progress("class archive made")


def _rehearse(folder: NodeFolder, runtime: Runtime) -> None:
    """Have a node do a little of everything, and end by itself."""
    node, _, process = start(folder, runtime, until_eof=True)
    assert process is not None
    assert process.stdin is not None
    try:
        with closing(open_xtdb(node.url, token=folder.token(), namespace="rehearsal")) as store:
            _use(store)
        process.stdin.close()
        process.wait(_END_SECONDS)
    finally:
        process.kill()
        process.wait()


def _use(store: XtdbStore) -> None:
    """What a model call asks of a store."""
    for content in ("a first text", "another text"):
        note = Document(id="note", type="note", content=content, provenance=_PROVENANCE).seal()
        store.commit(Batch(puts=[note]))
    store.get("note", Document, store.latest())
    store.heads(["note"])
    store.history("note")
    store.query("note")
    store.changes_since(None)

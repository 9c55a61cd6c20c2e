"""Backup and restore of a node's own data: its log and its documents, as they lie in RocksDB.

A backup is a tar file that any tar reads: first a manifest with the size and SHA-256 of every
file, then those files. It is an exact copy, so transactions keep their ids and everything that
is in the node is in it, whoever wrote it. A running node makes the copy by RocksDB's checkpoints
(`foredeck.node.checkpoint`); of one that is at rest the files themselves are copied. The index is
left out: the node rebuilds it.

Restoring never deletes older data: it is kept, complete, under another name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from foredeck import __version__
from foredeck.config import Config
from foredeck.errors import Corrupt, StoreError, StoreUnavailable
from foredeck.model.figures import counted
from foredeck.regular_files import open_regular, open_to_read
from foredeck.store.clock import now_ms
from foredeck.store.copying import verified
from foredeck.store.kind import BackupReport, Report
from foredeck.store.location import is_held, private_draft, sync_folder
from foredeck.xtdb.database.adapter import XtdbStore, open_xtdb
from foredeck.xtdb.database.client import Refused, XtdbClient
from foredeck.xtdb.link import copy_file
from foredeck.xtdb.maintenance import deliver_first, follow_anew, settled_node, waiting
from foredeck.xtdb.node import NodeFolder, NodeInfo, own_node_folder, private_node, start, stop
from foredeck.xtdb.runtime import find_runtime, how_to_start

FORMAT = "foredeck-xtdb-backup"
VERSION = 1
MANIFEST = "manifest.json"
LOG = "log"
"""The folder of the RocksDB that holds both (`xtdb/config/rocksdb.edn`)."""
CHECKPOINT_SECONDS = 120.0
_MANIFEST_BYTES = 64 * 1024 * 1024
_CHUNK = 1024 * 1024
_NAME = re.compile(rf"{LOG}/[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class BackupFile:
    """One file of a backup."""

    path: str
    size: int
    sha256: str


# Backing up


def back_up(folder: NodeFolder, target: Path, report: Report) -> BackupReport:
    """Write log and documents of `folder` into the file `target`, which only this user can read.

    An existing file is replaced. Raises `StoreUnavailable` where there is nothing to back up, or
    another backup is under way.
    """
    with _only_one(folder):
        with folder.kept_stopped() as is_stopped:
            if is_stopped:
                return _pack(folder.data, target, None, report)
        node = folder.running()
        if node is None:
            raise StoreUnavailable("the XTDB node is being started or stopped: try again")
        return _back_up_running(folder, node, target, report)


@contextmanager
def _only_one(folder: NodeFolder) -> Iterator[None]:
    if not folder.data.is_dir():
        raise StoreUnavailable(f"there is nothing to back up: {folder.data} does not exist")
    descriptor = open_regular(folder.root / "backup.lock", os.O_RDWR | os.O_CREAT)
    try:
        if is_held(descriptor):
            raise StoreUnavailable("another backup of this node is under way")
        yield
    finally:
        os.close(descriptor)


def _back_up_running(
    folder: NodeFolder, node: NodeInfo, target: Path, report: Report
) -> BackupReport:
    copy = folder.data / "checkpoint"
    client = XtdbClient(node.url, token=folder.token(), timeout_ms=round(CHECKPOINT_SECONDS * 1000))
    try:
        with closing(client):
            tx_id = client.save_checkpoint()
        return _pack(copy, target, tx_id, report)
    except Refused as error:
        raise StoreUnavailable(f"this node cannot be backed up: {error}") from error
    except FileNotFoundError as error:
        raise StoreUnavailable("the node was restarted meanwhile: back up again") from error
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def _pack(source: Path, target: Path, tx_id: int | None, report: Report) -> BackupReport:
    paths = [
        path
        for path in sorted((source / LOG).glob("*"))
        # RocksDB's own LOCK and LOG: neither is data.
        if path.is_file() and not path.name.startswith("LO")
    ]
    if not paths:
        raise StoreUnavailable(f"there is nothing to back up: {source} holds no RocksDB")
    entries = [_entry(path, source) for path in paths]
    time_ms = now_ms()
    # `tx_id`: the last transaction that is in it for certain, where a node ran and there is one.
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "foredeck": __version__,
        "time_ms": time_ms,
        "tx_id": tx_id,
        "files": [asdict(entry) for entry in entries],
    }
    text = json.dumps(manifest, indent=1).encode()
    with private_draft(target) as file, tarfile.open(fileobj=file, mode="w") as tar:
        tar.addfile(_member(MANIFEST, len(text), time_ms), BytesIO(text))
        for path, entry in zip(paths, entries, strict=True):
            with open_to_read(path) as stream:
                tar.addfile(_member(entry.path, entry.size, time_ms), stream)
            report(1, entry.path)
    return _described(target, entries, time_ms)


def _described(file: Path, entries: Collection[BackupFile], time_ms: int) -> BackupReport:
    size = sum(entry.size for entry in entries)
    return BackupReport(file, {"file": len(entries)}, size, time_ms)


def _entry(path: Path, root: Path) -> BackupFile:
    with open_to_read(path) as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return BackupFile(str(path.relative_to(root)), path.stat().st_size, digest)


def _member(name: str, size: int, time_ms: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = size, time_ms // 1000, 0o600
    return member


# Restoring


def restore(
    source: Path, folder: NodeFolder, *, force: bool = False, report: Report
) -> BackupReport:
    """Put log and documents of a backup in place of the data of `folder`, where no node runs.

    Everything is checked before anything is changed. Raises `StoreUnavailable` where there is data
    already; with `force` it is kept under another name. Raises `Corrupt` for a damaged file.
    """
    with folder.kept_stopped() as is_stopped:
        if not is_stopped:
            raise StoreUnavailable("a node runs here: `foredeck xtdb down`, then restore")
        if not force and folder.data.is_dir() and any(folder.data.iterdir()):
            raise StoreUnavailable(
                f"{folder.data} is not empty: --force renames what is there first"
            )
        draft = folder.restoring
        for left_over in (draft, folder.restored):
            shutil.rmtree(left_over, ignore_errors=True)
        try:
            draft.mkdir(mode=0o700)
            entries, time_ms = _unpack(source, draft, report)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        draft.rename(folder.restored)
        kept = folder.adopt_restored()
    return replace(_described(folder.data, entries, time_ms), kept=kept, hints=(_REBUILT,))


def _unpack(source: Path, draft: Path, report: Report) -> tuple[list[BackupFile], int]:
    """Write the files of a backup into a folder; what they are, and when it was made."""
    (draft / LOG).mkdir(mode=0o700)
    try:
        with tarfile.open(source, mode="r:") as tar:
            manifest = _read_manifest(tar)
            entries = [BackupFile(**entry) for entry in manifest["files"]]
            time_ms: int = manifest["time_ms"]
            missing = {entry.path: entry for entry in entries}
            while (member := tar.next()) is not None:
                _extract(tar, member, missing.pop(member.name, None), draft)
                report(1, member.name)
    except (tarfile.TarError, LookupError, TypeError, EOFError) as error:
        raise Corrupt(
            f"{source} is not a backup of an XTDB node, or is damaged: {error}"
        ) from error
    if missing:
        raise Corrupt(f"{source} is damaged: {min(missing)} is missing")
    sync_folder(draft / LOG)
    sync_folder(draft)
    return entries, time_ms


def _read_manifest(tar: tarfile.TarFile) -> dict[str, Any]:
    member = tar.next()
    if member is None or member.name != MANIFEST or member.size > _MANIFEST_BYTES:
        raise tarfile.TarError("it does not begin with a manifest")
    stream = tar.extractfile(member)
    try:
        manifest = json.loads(stream.read() if stream else b"")
        known = manifest["format"] == FORMAT
    except (ValueError, LookupError, TypeError) as error:
        raise tarfile.TarError("its manifest cannot be read") from error
    if not known:
        raise tarfile.TarError("its manifest is that of something else")
    if manifest["version"] != VERSION:
        raise StoreError(f"a newer foredeck wrote it (format {manifest['version']}): upgrade")
    return dict(manifest)


def _extract(
    tar: tarfile.TarFile, member: tarfile.TarInfo, entry: BackupFile | None, draft: Path
) -> None:
    """Write one file to the disk, if the manifest has its name, size and hash."""
    stream = tar.extractfile(member) if member.isreg() else None
    known = entry is not None and entry.size == member.size and _NAME.fullmatch(member.name)
    if stream is None or entry is None or not known:
        raise Corrupt(f"the backup holds {member.name!r}, which does not belong there")
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(draft / member.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while data := stream.read(_CHUNK):
            digest.update(data)
            size += len(data)
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if (size, digest.hexdigest()) != (entry.size, entry.sha256):
        raise Corrupt(f"the backup is damaged: {member.name} has another SHA-256 than it had")


_REBUILT = "`foredeck xtdb up` rebuilds the index from them."
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


def back_up_node(config: Config, file: Path, report: Report, *, verify: bool) -> BackupReport:
    """Back up the node of the state folder. What cannot be delivered to it is not in it."""
    _check_is_here(config)
    folder = own_node_folder(config.home)
    if not folder.data.is_dir():
        raise StoreUnavailable(
            f"there is nothing to back up: no node has run here; {how_to_start(config.home)}"
        )
    left = _delivered(config)
    made = back_up(folder, file, report)
    if left:
        hint = (
            f"{counted(left, 'transaction')} of this machine still waits for XTDB and is not in "
            "it: `foredeck xtdb sync` delivers, then back up again."
        )
        made = replace(made, hints=(hint,))
    return replace(made, verified=_verified(file, config, report)) if verify else made


def _delivered(config: Config) -> int:
    """Bring what waits to a node that runs; how much waits still. None is started for it."""
    if own_node_folder(config.home).running() is not None:
        with suppress(StoreUnavailable):
            deliver_first(config)
    return waiting(config)


def _verified(backup: Path, config: Config, report: Report) -> str:
    """Restore into a temporary folder and compare with what is here, as `verified`."""

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
        restore(backup, NodeFolder(Path(name)), report=report)
        try:
            with (
                private_node(Path(name), runtime, "rocksdb") as copy,
                opened(own) as here,
                opened(copy) as restored,
            ):
                return verified(here, restored, backup, lambda: report(1, "verifying"))
        finally:
            if not ran_before:
                stop(own)


def restore_node(config: Config, file: Path, report: Report, *, force: bool) -> BackupReport:
    """Restore a backup into the state folder."""
    _check_is_here(config)
    done = restore(file, own_node_folder(config.home), force=force, report=report)
    # A backup holds all namespaces.
    follow_anew(copy_file(config).parent.glob("own-*.db"))
    return done

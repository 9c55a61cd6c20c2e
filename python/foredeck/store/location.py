from __future__ import annotations

import os
import re
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from foredeck.regular_files import open_regular, require_regular

if sys.platform != "win32":
    import fcntl

NETWORK_FILESYSTEMS = frozenset(
    {
        *("9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fuse.glusterfs"),
        *("fuse.gcsfuse", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "glusterfs", "gpfs"),
        *("lustre", "ncpfs", "nfs", "nfs4", "orangefs", "smb2", "smb3", "smbfs", "virtiofs"),
        "webdav",
    }
)

_MOUNTS = Path("/proc/self/mounts")
_OCTAL = re.compile(r"\\([0-7]{3})")
_DRAFT, _DRAFT_END = ".foredeck-", ".draft"


def make_private_file(path: Path) -> None:
    """Creates the file (0600) with folders (0700), unless it exists.

    Raises `OSError` if impossible or something else is there.
    """
    _make_private_folder(path.parent)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        require_regular(path)


def _make_private_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def private_draft(target: Path) -> Iterator[IO[bytes]]:
    """A new file (0600) that replaces `target` when complete and on disk.

    A failing block leaves the old one. Raises `OSError`, and `NotRegular` for a link or other
    non-file.
    """
    with draft_beside(target) as draft, draft.open("wb") as file:
        yield file


def is_draft(path: Path) -> bool:
    """Whether a file is named like a draft."""
    name = path.name.removesuffix("-journal")
    return name.startswith(_DRAFT) and name.endswith(_DRAFT_END)


@contextmanager
def draft_beside(target: Path) -> Iterator[Path]:
    """Like `private_draft`, as a path; removes drafts of killed processes."""
    require_regular(target, follow=False)
    _remove_left_drafts(target.parent)
    descriptor, draft = make_held(target.parent, _DRAFT, _DRAFT_END)
    try:
        yield draft
        os.fsync(descriptor)
        require_regular(target, follow=False)
        draft.replace(target)
        sync_folder(target.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def make_once(path: Path, data: bytes) -> None:
    """Makes a private file (0600), whole from its first moment; one that is there stays."""
    descriptor, draft = make_held(path.parent, _DRAFT, _DRAFT_END)
    try:
        os.write(descriptor, data)
        os.fsync(descriptor)
        # A link fails where the file is there; a rename would replace another process's.
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
        os.close(descriptor)


def make_held(folder: Path, prefix: str, suffix: str = "") -> tuple[int, Path]:
    """A new file (0600), locked until its descriptor is closed."""
    while True:
        path = folder / f"{prefix}{secrets.token_hex(6)}{suffix}"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            # The user has not named this file, but knows the folder.
            error.filename = str(folder)
            raise
        if sys.platform == "win32":
            return descriptor, path
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if path.exists():  # or it was removed before it was locked
            return descriptor, path
        os.close(descriptor)


def is_held(descriptor: int, *, shared: bool = False) -> bool:
    """Whether a process holds the open file; if not, the caller does now. Raises `OSError` if files
    cannot be locked."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _remove_left_drafts(folder: Path) -> None:
    with suppress(OSError):
        for path in folder.glob(f"{_DRAFT}*{_DRAFT_END}"):
            with suppress(OSError):
                _remove_left(path)


def _remove_left(draft: Path) -> None:
    descriptor = open_regular(draft, os.O_RDWR, follow=False)
    try:
        if not is_held(descriptor):
            draft.with_name(f"{draft.name}-journal").unlink(missing_ok=True)  # SQLite's
            draft.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Waits until a folder's names are on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_network_filesystem(path: Path | str) -> bool:
    """Whether `path` is on a network file system; False if unknown."""
    # SQLite in WAL mode needs shared memory between all its users and locks that hold; a network
    # file system gives neither.
    kind = filesystem_type(path)
    return kind is not None and kind in NETWORK_FILESYSTEMS


def filesystem_type(path: Path | str, mounts: Path = _MOUNTS) -> str | None:
    """The type at `path`, by the longest mount point of a table like `/proc/mounts`."""
    try:
        table = mounts.read_text(errors="surrogateescape")
    except OSError:
        return None
    target = os.path.realpath(path)
    best: tuple[int, str] | None = None
    for line in table.split("\n"):
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[1])
        # Of two mounts on one point the later one hides the earlier.
        if _is_under(target, point) and (best is None or len(point) >= best[0]):
            best = (len(point), fields[2])
    return best[1] if best else None


def _is_under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def holders(path: Path) -> list[int]:
    """The user's other processes with `path` open; empty without `/proc`."""
    target = os.path.realpath(path)
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        pid = int(process.name)
        if pid != os.getpid() and _has_open(process / "fd", target):
            pids.append(pid)
    return sorted(pids)


def _has_open(descriptors: Path, target: str) -> bool:
    try:
        links = list(descriptors.iterdir())
    except OSError:
        return False
    for link in links:
        try:
            if str(link.readlink()) == target:
                return True
        except OSError:
            continue
    return False


LOGS = ("-wal", "-shm")
"""Endings of a store's further files."""
_SAID = "damage-said"
"""Damaged stores that the user was told of at a later start."""
_COMPANIONS = ("", *LOGS)


def quarantine(path: Path, inode: int | None = None) -> Path | None:
    """Renames a store and its files; returns the new name, or None if another process did. Raises
    `OSError`."""
    with exclusively(path):
        try:
            current = path.stat().st_ino
        except FileNotFoundError:
            return None
        if inode is not None and current != inode:
            return None
        target = free_name(path, "damaged")
        rename_with(path, target, _COMPANIONS)
        return target


def earlier_damage(path: Path) -> list[str]:
    """Tells once of each store quarantined since the last start."""
    marker = path.with_name(_SAID)
    try:
        beside = (*LOGS, ".jsonl")
        there = [
            p for p in path.parent.glob(f"{path.name}.damaged-*") if not p.name.endswith(beside)
        ]
        reported = marker.read_text("utf-8").splitlines() if there and marker.exists() else []
        new = sorted(p for p in there if p.name not in reported)
        if new:
            with os.fdopen(
                open_regular(marker, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "a"
            ) as file:
                file.writelines(f"{p.name}\n" for p in new)
    except OSError:
        return []
    return [
        f"An earlier store was damaged, and a fresh one took its place: it is kept as {p}. "
        "`foredeck restore FILE --force` brings a backup back."
        for p in new
    ]


def rename_with(path: Path, target: Path, companions: Sequence[str]) -> None:
    """Renames the store's files with these endings."""
    # The log goes along: a fresh store beside a stale -wal would be damaged at once.
    for companion in companions:
        source = path.with_name(path.name + companion)
        if source.exists():
            source.rename(target.with_name(target.name + companion))


def inode_of(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def free_name(path: Path, state: str) -> Path:
    """A free name beside the file, with its state and the day."""
    day = time.strftime("%Y-%m-%d")
    names = (f"{path.name}.{state}-{day}{f'-{n}' if n else ''}" for n in range(1000))
    return next(free for name in names if not (free := path.with_name(name)).exists())


@contextmanager
def exclusively(path: Path) -> Iterator[None]:
    """Lets one process at a time replace a store's file."""
    # Of two that find the same damage only one may rename, or the second would move the fresh store
    # of the first.
    if sys.platform == "win32":
        yield
        return
    descriptor = open_regular(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)

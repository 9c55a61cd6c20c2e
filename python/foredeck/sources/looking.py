# Paths are strings here: not always UTF-8, thousands at a time.
# ruff: noqa: PTH116, PTH120
"""One look at a path: what it is, its bytes, its file system, and whether a change has settled.

`missing`: no such path. `unreachable`: invisible, which says nothing of the file.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from foredeck.regular_files import NotRegular, open_regular
from foredeck.sources.filesystem import FilesystemMap, is_within, nearest_status

Kind = Literal[
    "text", "binary", "huge", "unreadable", "special", "directory", "missing", "unreachable"
]
Fingerprint = tuple[int, int, int, int, int]

RACY_NS = 2_000_000_000
"""A file read this soon after a change may change again with the same time stamp."""

HASHED_BYTES = 16 * 1024 * 1024
"""Files above the text limit are hashed up to this size: some 20 ms."""

_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL}
_DENIED = {errno.EACCES, errno.EPERM}
_RETRIES = 2  # of a read during which the file was written to


@dataclass(frozen=True, slots=True)
class Look:
    """The result of a look.

    `source_hash`: SHA-256 of the bytes. `trusted`: a later equal `fingerprint` means equal bytes.
    """

    kind: Kind
    source_hash: str | None = None
    text: str | None = None
    size: int = 0
    mtime_ns: int = 0
    detail: str = ""
    fingerprint: Fingerprint | None = None
    trusted: bool = False
    volume: str | None = None

    @property
    def revision(self) -> str | None:
        """Identifies the state of a binary or huge file: its hash, or size and times."""
        if self.kind not in ("binary", "huge"):
            return None
        if self.source_hash is not None or self.fingerprint is None:
            return self.source_hash
        _, _, size, mtime_ns, ctime_ns = self.fingerprint
        return f"{size}:{mtime_ns}:{ctime_ns}"


def look(path: str, max_bytes: int, *, hashed_bytes: int = HASHED_BYTES) -> Look:
    """What is at an absolute local path; a file above `max_bytes` is hashed, not read."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            # The caller has resolved the links, so this one is newer, and leads to another file.
            os.stat(path)  # raises for one that leads into a loop
            return Look("missing")
    except (OSError, ValueError) as error:
        return _absence(error)
    if stat.S_ISDIR(status.st_mode):
        return Look("directory", mtime_ns=status.st_mtime_ns)
    if not stat.S_ISREG(status.st_mode):
        return _seen(status, "special", detail=_special_kind(status.st_mode))
    if status.st_size > max(max_bytes, hashed_bytes):
        return _seen(status, "huge")
    return _open_and_read(path, max_bytes, hashed_bytes)


def fingerprint(status: os.stat_result) -> Fingerprint:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def fingerprint_at(path: str) -> Fingerprint | None:
    try:
        return fingerprint(os.stat(path))
    except (OSError, ValueError):
        return None


def is_fresh(seen: Fingerprint) -> bool:
    """Whether a file changed so recently that its time stamp may hide a further change."""
    return time.time_ns() - max(seen[3], seen[4]) < RACY_NS


def decode(data: bytes) -> str | None:
    """The text of these bytes; None if they are not text."""
    # Valid UTF-8 also has NULs. UTF-16 is binary: no tool of the agent can edit it.
    if b"\0" in data:
        return None
    try:
        # A byte order mark stays in the text: text and bytes must have the same hash.
        return data.decode()
    except UnicodeDecodeError:
        return None


def _open_and_read(path: str, max_bytes: int, hashed_bytes: int) -> Look:
    try:
        # A pipe may have taken the file's place since `lstat`; opening that would block.
        handle = open_regular(path, follow=False)
    except NotRegular:
        status = os.lstat(path)
        return _seen(status, "special", detail=_special_kind(status.st_mode))
    except OSError as error:
        if error.errno in _DENIED:
            return Look("unreadable")
        return _absence(error)
    try:
        return _read_open(handle, max_bytes, hashed_bytes)
    except OSError:
        return Look("unreadable")
    finally:
        os.close(handle)


def _read_open(handle: int, max_bytes: int, hashed_bytes: int) -> Look:
    # The time from before reading: a change meanwhile must not seem to have been long ago.
    now_ns, before = time.time_ns(), os.fstat(handle)
    read, after = _read(handle, max_bytes, hashed_bytes), os.fstat(handle)
    for _ in range(_RETRIES):
        if fingerprint(before) == fingerprint(after):
            break
        now_ns, before = time.time_ns(), after
        read, after = _read(handle, max_bytes, hashed_bytes), os.fstat(handle)
    if read.digest is None:
        return _seen(after, "huge")
    text = None if read.data is None else decode(read.data)
    changed_ns = max(after.st_mtime_ns, after.st_ctime_ns)
    return Look(
        "huge" if read.data is None else "binary" if text is None else "text",
        read.digest,
        text,
        read.size,
        after.st_mtime_ns,
        fingerprint=fingerprint(after),
        trusted=now_ns - changed_ns > RACY_NS,
    )


class _Read(NamedTuple):
    data: bytes | None
    digest: str | None
    size: int


def _read(handle: int, max_bytes: int, hashed_bytes: int) -> _Read:
    os.lseek(handle, 0, os.SEEK_SET)
    parts: list[bytes] = []
    digest, size = hashlib.sha256(), 0
    while part := os.read(handle, 1 << 20):
        digest.update(part)
        size += len(part)
        if size <= max_bytes:
            parts.append(part)
        elif size > hashed_bytes:
            return _Read(None, None, size)
    return _Read(b"".join(parts) if size <= max_bytes else None, digest.hexdigest(), size)


def _seen(status: os.stat_result, kind: Kind, detail: str = "") -> Look:
    return Look(
        kind,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        detail=detail,
        fingerprint=fingerprint(status),
        trusted=True,
    )


def _absence(error: Exception) -> Look:
    if not isinstance(error, OSError):
        return Look("missing")  # no file can have this name
    if error.errno == errno.ELOOP:
        return Look("special", detail="symlink loop")
    return Look("missing" if error.errno in _ABSENT else "unreachable")


def _special_kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "fifo"
    if stat.S_ISSOCK(mode):
        return "socket"
    if stat.S_ISCHR(mode):
        return "character device"
    return "block device" if stat.S_ISBLK(mode) else "special file"


# Most programs save by emptying a file and writing it again, or by replacing it. A look in between
# finds a state that is gone a moment later.
SETTLES_S = 0.1
"""Seconds without change after which a file counts as settled."""
EMPTIED_SETTLES_S = 1.0
"""The same for an emptied file, whose writer may be slow."""
NEVER_SETTLES_S = 5.0
"""Seconds after which a restless file, such as a log, is read anyway."""


@dataclass(slots=True)
class _Waiting:
    """A changed file: its state, since when, and the first change seen."""

    state: Fingerprint | None
    since_s: float
    first_s: float


class SettlingFiles:
    """Changed files that have not settled. `clock`: monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}

    def is_settled(self, path: str, seen: Look, *, emptied: bool) -> bool:
        """Whether the change in `seen` counts now; if not, look again shortly."""
        now, need = self._clock(), EMPTIED_SETTLES_S if emptied else SETTLES_S
        waiting = self._waiting.setdefault(path, _Waiting(seen.fingerprint, now, now))
        if waiting.state != seen.fingerprint:
            waiting.state, waiting.since_s = seen.fingerprint, now
        changed_ns = seen.mtime_ns
        if seen.fingerprint is None:
            # Removing a file changes the modification time of its folder.
            status = nearest_status(os.path.dirname(path))
            changed_ns = 0 if status is None else status.st_mtime_ns
        # It may lie in the future: then two equal looks that far apart will do.
        age_s = (time.time_ns() - changed_ns) / 1e9
        is_old_enough = max(now - waiting.since_s, age_s) >= need
        return is_old_enough or now - waiting.first_s >= NEVER_SETTLES_S

    def forget(self, path: str) -> None:
        """Forgets a file whose newest version is known."""
        self._waiting.pop(path, None)


# A folder's file system and place in it, to tell a missing file from a missing file system. A mount
# is another place than the folder under it.


_MOUNTS = Path("/proc/self/mountinfo")
_CHARS = 16
"""Of the hash that names a place."""


class Volumes:
    """Places of folders, cached until `forget`."""

    def __init__(self) -> None:
        self._places: dict[str, str | None] = {}
        self._mounts: dict[str, str] | None = None

    def forget(self) -> None:
        """Forgets everything: mounts may have changed."""
        self._places.clear()
        self._mounts = None

    def place(self, folder: str) -> str | None:
        """Names a local folder's file system and place, even if it is missing; None if unknown."""
        if folder not in self._places:
            if self._mounts is None:
                self._mounts = _mounted()
            self._places[folder] = _place(folder, self._mounts)
        return self._places[folder]


def is_away(
    local: str,
    fields: Mapping[str, object],
    filesystems: FilesystemMap,
    volumes: Volumes,
    seen_on: str | None = None,
    within: Collection[str] = (),
) -> bool:
    """Whether a missing file may be merely out of reach."""
    folder = os.path.dirname(local)
    last_place = seen_on or fields.get("volume")
    if last_place is not None and volumes.place(folder) not in (last_place, None):
        return True
    there = _nearest_folder(folder)
    if there == folder:
        return False
    # A folder that was removed with its files, and not the whole of what it belongs to.
    root = filesystems.root_at(local)
    wholes = within or [filesystems.cwd] if root is None else [root]
    return there is None or not any(is_within(there, filesystems.real(one)) for one in wholes)


def is_orphaned(
    fields: Mapping[str, object],
    local: str | None,
    filesystems: FilesystemMap,
    volumes: Volumes,
    within: Collection[str] = (),
) -> bool:
    """Whether a file cannot be checked where it was, so that its newest version stays."""
    if fields.get("state") == "deleted":
        return False
    if local is None:
        return True
    if os.path.lexists(local):
        return False
    return is_away(local, fields, filesystems, volumes, within=within)


def _nearest_folder(folder: str) -> str | None:
    """The folder or its nearest visible ancestor; None if one may exist unseen."""
    while True:
        try:
            os.stat(folder)
            return folder
        except FileNotFoundError:
            pass
        except NotADirectoryError:
            pass
        except (OSError, ValueError):
            return None
        if os.path.dirname(folder) == folder:
            return None
        folder = os.path.dirname(folder)


def _place(folder: str, mounts: Mapping[str, str]) -> str | None:
    point = folder
    while mounts and point not in mounts and os.path.dirname(point) != point:
        point = os.path.dirname(point)
    try:
        if point in mounts:
            inner = f"{mounts[point]}/{folder[len(point) :]}"
            place_name = f"{_name_of(point)} {'/'.join(filter(None, inner.split('/')))}"
        else:
            place_name = _beside_linux(folder)
    except OSError:
        return None
    return hashlib.sha256(place_name.encode("utf-8", "surrogatepass")).hexdigest()[:_CHARS]


def _name_of(point: str) -> str:
    number = os.statvfs(point).f_fsid if sys.platform != "win32" else 0
    return f"{number:x}" if number else f"device {os.stat(point).st_dev}"


def _beside_linux(folder: str) -> str:
    """Start of a folder's file system; on Windows with serial number."""
    status = nearest_status(folder)
    if status is None:
        raise FileNotFoundError(folder)
    if sys.platform == "win32":
        return f"{status.st_dev} {folder}"
    while os.path.dirname(folder) != folder:
        above = nearest_status(os.path.dirname(folder))
        if above is None or above.st_dev != status.st_dev:
            break
        folder = os.path.dirname(folder)
    return folder


def _mounted() -> dict[str, str]:
    """Mount points, and the folder that each shows; empty if unknown."""
    try:
        text = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        mounts = [line.split(" ", 5)[3:5] for line in text.splitlines()]
    except (OSError, ValueError):
        return {}
    return {_spelt(point): _spelt(root) for root, point in mounts}


def _spelt(path: str) -> str:
    for escape, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(escape, char)
    return path

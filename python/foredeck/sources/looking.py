# Paths are strings here: not always UTF-8, thousands at a time.
# ruff: noqa: PTH116, PTH120
"""One look at one path: what is there, its bytes if it is a file worth reading, and whether a
change has settled.

Absence has two shapes. `missing`: there is no such path. `unreachable`: the place cannot be seen
(not permitted, the device or network fails), which says nothing about the file. Whether what is
missing was removed, `volumes.is_away` tells.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from foredeck.regular_files import NotRegular, open_regular
from foredeck.sources.filesystem import nearest_status

Kind = Literal[
    "text", "binary", "huge", "unreadable", "special", "directory", "missing", "unreachable"
]
Fingerprint = tuple[int, int, int, int, int]
"""Device, inode, size, mtime and ctime in ns: equal ones mean equal bytes, unless racy."""

RACY_NS = 2_000_000_000
"""A file changed so shortly before it was read may change again without a new time stamp."""

HASHED_BYTES = 16 * 1024 * 1024
"""Files larger than the limit for text are hashed, but not read in, up to this size: some 20 ms."""

_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL}
_DENIED = {errno.EACCES, errno.EPERM}
_RETRIES = 2  # of a read during which the file was written to


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at a path found.

    `source_hash` is the SHA-256 of the bytes (text, binary, and huge up to `HASHED_BYTES`),
    `detail` the sort of special file. `trusted`: an equal `fingerprint` at a later look means equal
    bytes. `volume`: the place of the folder that the path is in (`volumes.Volumes`), for whoever
    remembers the look.
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
        """Identifies this state of a binary or huge file; None for all else.

        The hash of its bytes; without one, size and times: a change of permissions then counts
        as a change, which is better than to miss a rewrite that keeps size and mtime.
        """
        if self.kind not in ("binary", "huge"):
            return None
        if self.source_hash is not None or self.fingerprint is None:
            return self.source_hash
        _, _, size, mtime_ns, ctime_ns = self.fingerprint
        return f"{size}:{mtime_ns}:{ctime_ns}"


def look(
    path: str,
    max_bytes: int,
    *,
    hashed_bytes: int = HASHED_BYTES,
) -> Look:
    """What is at `path` (an absolute path of this machine, links resolved) now.

    A file of more than `max_bytes` is not read in, but hashed unless it has more than
    `hashed_bytes`.
    """
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
    """What changes whenever a file is written to or replaced."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def fingerprint_at(path: str) -> Fingerprint | None:
    """The fingerprint of what is at a path, links followed; None where nothing can be seen."""
    try:
        return fingerprint(os.stat(path))
    except (OSError, ValueError):
        return None


def is_fresh(seen: Fingerprint) -> bool:
    """Whether a file was changed so shortly ago that it may change again within the same tick."""
    return time.time_ns() - max(seen[3], seen[4]) < RACY_NS


def decode(data: bytes) -> str | None:
    """The text that these bytes are, None if they are not text."""
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
    """What an open file holds: its bytes unless there are too many to keep, else their hash, or
    only how many were read before giving up."""

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
"""A file that has not changed for this long counts as settled."""
EMPTIED_SETTLES_S = 1.0
"""The same for a file that was emptied: whoever saves it may be slow on a busy machine."""
NEVER_SETTLES_S = 5.0
"""A file that never settles, such as a log, is read as it is after this long."""


@dataclass(slots=True)
class _Waiting:
    """A changed file: its state, since when it has had that, and when it was first seen changed."""

    state: Fingerprint | None
    since_s: float
    first_s: float


class SettlingFiles:
    """Changed files that have not settled yet. `clock`: monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}

    def is_settled(self, path: str, seen: Look, *, emptied: bool) -> bool:
        """Whether the change that `seen` shows counts now; if not, look again in a moment."""
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
        """The newest version of the file is known, or about to be stored."""
        self._waiting.pop(path, None)

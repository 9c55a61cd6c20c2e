# Paths are strings here: not always UTF-8, thousands at a time.
# ruff: noqa: PTH116, PTH120
"""One look at one path: what is there, and its bytes if it is a file worth reading.

What a file is, is decided by its bytes: text is valid UTF-8 without NUL (a UTF-8 byte order mark
stays in the text, so that text and bytes are the same thing; UTF-16 is binary: no tool of the
agent can edit it). Nothing but a regular file is ever opened, so that a FIFO cannot block.

Absence has two shapes. `missing`: the place can be seen and the file is not in it.
`unreachable`: the place itself cannot be seen (folder gone, not mounted, not permitted, the
device or network fails), which says nothing about the file.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "text", "binary", "huge", "unreadable", "special", "directory", "missing", "unreachable"
]
Fingerprint = tuple[int, int, int, int, int]
"""Device, inode, size, mtime and ctime in ns: equal ones mean equal bytes, unless racy."""

RACY_NS = 2_000_000_000
"""A file changed so shortly before it was read may change again without a new time stamp."""

_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL}
_DENIED = {errno.EACCES, errno.EPERM}
_RETRIES = 2  # of a read during which the file was written to


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at a path found.

    `source_hash` is the SHA-256 of the bytes (text and binary only), `detail` the sort of
    special file or the reason of a failure. `settled` tells that an equal `fingerprint` at a
    later look means equal bytes. `device` is the device of the folder that the path is in.
    """

    kind: Kind
    source_hash: str | None = None
    text: str | None = None
    size: int = 0
    mtime_ns: int = 0
    detail: str = ""
    fingerprint: Fingerprint | None = None
    settled: bool = False
    device: int | None = None


def look(
    path: str, max_bytes: int, *, device: int | None = None, project: str | None = None
) -> Look:
    """What is at `path` (an absolute path of this machine) now.

    A file of more than `max_bytes` is not read. `device` is where the file's folder was when it
    was last seen, and `project` a folder whose own subfolders count as removed when they are
    gone: both help to tell a deletion from a file system that went away.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        return _absence(path, error, device, project)
    if stat.S_ISDIR(status.st_mode):
        return Look("directory", mtime_ns=status.st_mtime_ns)
    if not stat.S_ISREG(status.st_mode):
        return _seen(path, status, "special", detail=_sort(status.st_mode))
    if status.st_size > max_bytes:
        return _seen(path, status, "huge")
    return _read(path, max_bytes, device, project)


def fingerprint(status: os.stat_result) -> Fingerprint:
    """What changes whenever a file is written to or replaced."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def decode(data: bytes) -> str | None:
    """The text that these bytes are, None if they are not text."""
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _read(path: str, max_bytes: int, device: int | None, project: str | None) -> Look:
    try:
        handle = os.open(path, os.O_RDONLY | _OPEN_FLAGS)
    except OSError as error:
        if error.errno in _DENIED:
            return Look("unreadable", detail=error.strerror or "")
        return _absence(path, error, device, project)
    try:
        return _read_open(path, handle, max_bytes)
    except OSError as error:
        return Look("unreadable", detail=error.strerror or "")
    finally:
        os.close(handle)


_OPEN_FLAGS = (
    getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def _read_open(path: str, handle: int, max_bytes: int) -> Look:
    now_ns, before = time.time_ns(), os.fstat(handle)
    if not stat.S_ISREG(before.st_mode):
        return _seen(path, before, "special", detail=_sort(before.st_mode))
    data, after = _bytes(handle, max_bytes), os.fstat(handle)
    for _ in range(_RETRIES):
        if data is None or fingerprint(before) == fingerprint(after):
            break
        now_ns, before = time.time_ns(), after
        data, after = _bytes(handle, max_bytes), os.fstat(handle)
    if data is None:
        return _seen(path, after, "huge")
    text = decode(data)
    changed_ns = max(after.st_mtime_ns, after.st_ctime_ns)
    return Look(
        "binary" if text is None else "text",
        hashlib.sha256(data).hexdigest(),
        text,
        len(data),
        after.st_mtime_ns,
        fingerprint=fingerprint(after),
        settled=now_ns - changed_ns > RACY_NS,
        device=_device_of_folder(path),
    )


def _bytes(handle: int, max_bytes: int) -> bytes | None:
    """All bytes of the open file, None when there are more than `max_bytes`."""
    os.lseek(handle, 0, os.SEEK_SET)
    parts: list[bytes] = []
    left = max_bytes + 1
    while left > 0 and (part := os.read(handle, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts) if left > 0 else None


def _seen(path: str, status: os.stat_result, kind: Kind, detail: str = "") -> Look:
    return Look(
        kind,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        detail=detail,
        fingerprint=fingerprint(status),
        settled=True,
        device=_device_of_folder(path),
    )


def _absence(path: str, error: Exception, device: int | None, project: str | None) -> Look:
    if not isinstance(error, OSError):
        return Look("missing", detail="no file can have this name")
    if error.errno == errno.ELOOP:
        return Look("special", detail="symlink loop")
    reason = error.strerror or ""
    if error.errno in _ABSENT and _removed(path, device, project):
        return Look("missing", detail=reason)
    return Look("unreachable", detail=reason)


def _removed(path: str, device: int | None, project: str | None) -> bool:
    """Whether a path that is not there was removed, rather than its file system."""
    folder = os.path.dirname(path)
    direct = True
    while True:
        try:
            status = os.stat(folder)
            break
        except OSError as error:
            above = os.path.dirname(folder)
            if error.errno not in _ABSENT or above == folder:
                return False
            folder, direct = above, False
    if device is not None:
        return status.st_dev == device
    return direct or (project is not None and _is_within(folder, project))


def _is_within(folder: str, project: str) -> bool:
    return folder == project or folder.startswith(project.rstrip(os.sep) + os.sep)


def _device_of_folder(path: str) -> int | None:
    try:
        return os.stat(os.path.dirname(path)).st_dev
    except OSError:
        return None


def _sort(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "fifo"
    if stat.S_ISSOCK(mode):
        return "socket"
    if stat.S_ISCHR(mode):
        return "character device"
    return "block device" if stat.S_ISBLK(mode) else "special file"

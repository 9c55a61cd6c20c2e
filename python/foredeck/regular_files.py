"""Opens only regular files, and reads to a bound: a named pipe would wait for ever, and `/dev/zero`
never ends."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader, BufferedWriter
from pathlib import Path

SMALL = 1024 * 1024

_FLAGS = (
    getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


class NotRegular(OSError):
    """A folder, a pipe, a device, or a link that is not followed."""


class TooLarge(OSError):
    """The file has more bytes than are read of it."""


def open_regular(
    path: str | os.PathLike[str], flags: int = os.O_RDONLY, *, follow: bool = True
) -> int:
    """The descriptor of a regular file; made with mode 0600. Raises `OSError`, `NotRegular` among
    them."""
    no_follow = 0 if follow else getattr(os, "O_NOFOLLOW", 0)
    try:
        # Not opened to find out: that alone can change a device.
        _check(Path(path).stat(follow_symlinks=follow), path)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    descriptor = os.open(path, flags | _FLAGS | no_follow, 0o600)
    try:
        _check(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_to_read(path: str | os.PathLike[str], *, follow: bool = True) -> BufferedReader:
    """A regular file, opened to read bytes. Raises `OSError`."""
    return os.fdopen(open_regular(path, follow=follow), "rb")


def open_to_append(path: str | os.PathLike[str]) -> BufferedWriter:
    """A regular file, opened to append; made (0600) if missing. Raises `OSError`."""
    return os.fdopen(open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab")


def read_regular(path: str | os.PathLike[str], most: int = SMALL) -> bytes:
    """All bytes of a regular file. Raises `OSError`, `TooLarge`."""
    with open_to_read(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise TooLarge(errno.EFBIG, f"it is larger than {most:,} bytes", os.fspath(path))
    return data


def read_text(path: str | os.PathLike[str], most: int = SMALL, *, errors: str = "strict") -> str:
    """Like `read_regular`, for UTF-8. Raises `ValueError` for other bytes."""
    return read_regular(path, most).decode("utf-8", errors)


def require_regular(path: str | os.PathLike[str], *, follow: bool = True) -> None:
    """Raises `NotRegular` if something is there that is no regular file."""
    try:
        _check(Path(path).stat(follow_symlinks=follow), path)
    except FileNotFoundError:
        return


def _check(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(status.st_mode):
        text = f"it is {kind_of(status.st_mode)}, not a file"
        code = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
        raise NotRegular(code, text, os.fspath(path))


def kind_of(mode: int) -> str:
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISLNK, "a link"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    return next((name for is_kind, name in kinds if is_kind(mode)), "a special file")

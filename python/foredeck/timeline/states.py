# Paths are strings here: not always UTF-8.
# ruff: noqa: PTH100, PTH103, PTH105, PTH108, PTH114, PTH115, PTH118, PTH120, PTH112
# ruff: noqa: PTH211, PTH101
"""Reads and restores paths atomically, never through a link."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import NamedTuple

from foredeck.errors import ForedeckError
from foredeck.model.records import MISSING, PathState
from foredeck.regular_files import open_regular

MAX_BYTES = 32 * 1024 * 1024
"""Larger files are not kept."""


class CannotRestore(ForedeckError):
    pass


class Captured(NamedTuple):
    state: PathState
    data: bytes | None = None


def own_path(path: str) -> str:
    """`path` with its folder's links resolved, not its own."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def capture(path: str, max_bytes: int = MAX_BYTES) -> Captured:
    """What is at a path; never raises for what it finds."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return Captured(PathState(kind="link", target=os.readlink(path)))
        if not stat.S_ISREG(status.st_mode):
            return Captured(PathState(kind="other"))
        if status.st_size > max_bytes:
            return Captured(_large(status))
        return _read(path, max_bytes)
    except (FileNotFoundError, NotADirectoryError):
        return Captured(MISSING)
    except (OSError, ValueError):
        return Captured(PathState(kind="other"))


def _read(path: str, max_bytes: int) -> Captured:
    # The path may be a link or a pipe by now.
    descriptor = open_regular(path, follow=False)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        # One more than is kept: the file may have grown since.
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        return Captured(_large(status))
    digest, mode = hashlib.sha256(data).hexdigest(), stat.S_IMODE(status.st_mode)
    return Captured(PathState(kind="file", digest=digest, mode=mode, size=len(data)), data)


def _large(status: os.stat_result) -> PathState:
    # Size and time tell its states apart well enough to see that it has changed.
    target = f"{status.st_size}:{status.st_mtime_ns}"
    return PathState(kind="large", target=target, size=status.st_size)


def put_back(path: str, state: PathState, data: bytes | None) -> None:
    """Readers see the old or the new state whole.

    Raises `CannotRestore` if something is in the way, or the folder became a link.
    """
    # What lies behind a link was never this path.
    if own_path(path) != path:
        raise CannotRestore("its folder is reached through a link by now")
    if os.path.isdir(path) and not os.path.islink(path):
        raise CannotRestore("there is a folder in its place")
    try:
        if state.kind == "missing":
            _remove(path)
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # The same name each time: what a killed process has left is removed at the next try.
        name = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
        draft = os.path.join(os.path.dirname(path), f".foredeck-{name}")
        try:
            _remove(draft)
            _make(draft, state, data)
            os.replace(draft, path)
        finally:
            _remove(draft)
    except OSError as error:
        raise CannotRestore(error.strerror or str(error)) from error


def _make(draft: str, state: PathState, data: bytes | None) -> None:
    if state.kind == "link":
        os.symlink(state.target or "", draft)
        return
    if state.kind != "file" or data is None:
        raise CannotRestore("its bytes were not kept")
    # With its permissions only once it is whole: until then nobody else reads it.
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        # Else a power failure after the rename may leave an empty file in place of the old one.
        os.fsync(descriptor)
    os.chmod(draft, state.mode if state.mode is not None else 0o644)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return

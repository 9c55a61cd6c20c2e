"""A damaged SQLite store is moved out of the way and kept; a fresh one takes its place."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from foredeck.regular_files import open_regular

LOGS = ("-wal", "-shm")
"""How the names of the files that belong to a store end."""
_COMPANIONS = ("", *LOGS)


def quarantine(path: Path, inode: int | None = None) -> Path | None:
    """Rename the store at `path` and the files that belong to it; the new name.

    None where another process has done so already: `inode` is that of the damaged file, and the
    one at `path` is another by now. Raises `OSError` where it cannot be renamed.
    """
    with exclusively(path):
        try:
            found = path.stat().st_ino
        except FileNotFoundError:
            return None
        if inode is not None and found != inode:
            return None
        target = free_name(path, "damaged")
        rename_with(path, target, _COMPANIONS)
        return target


def rename_with(path: Path, target: Path, companions: Sequence[str]) -> None:
    """Rename the files whose names begin with that of the store and end with one of these.

    The log goes along: a fresh store beside a stale -wal would be damaged at once.
    """
    for companion in companions:
        source = path.with_name(path.name + companion)
        if source.exists():
            source.rename(target.with_name(target.name + companion))


def inode_of(path: Path) -> int | None:
    """What distinguishes a file from one that has taken its place; None where there is none."""
    try:
        return path.stat().st_ino
    except OSError:
        return None


def free_name(path: Path, state: str) -> Path:
    """A name that is free, beside the file: its own, what became of it, and the day."""
    day = time.strftime("%Y-%m-%d")
    names = (f"{path.name}.{state}-{day}{f'-{n}' if n else ''}" for n in range(1000))
    return next(free for name in names if not (free := path.with_name(name)).exists())


@contextmanager
def exclusively(path: Path) -> Iterator[None]:
    """One process at a time puts another file in place of a store: of two that find the same
    damage only one may rename, or the second would move the fresh store of the first."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    descriptor = open_regular(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)

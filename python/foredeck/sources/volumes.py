# Paths are strings here: not always UTF-8, thousands at a time.
# ruff: noqa: PTH116, PTH120
"""On which file system a folder lies, and where in it, so that a file that is gone can be told from
one whose file system is.

A file counts as deleted only where its folder is there and lies where it lay. What is mounted
somewhere is another place than the empty folder below it, also where a part of the same file system
is mounted (a bind mount); and a place stays the same in a sandbox that shows it under its own path.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from foredeck.sources.filesystem import FilesystemMap, is_within, nearest_status

_MOUNTS = Path("/proc/self/mountinfo")
_CHARS = 16
"""Of the hash that names a place."""


class Volumes:
    """The places of folders, as they are until `forget` is called."""

    def __init__(self) -> None:
        self._places: dict[str, str | None] = {}
        self._mounts: dict[str, str] | None = None

    def forget(self) -> None:
        """Something may have been mounted or unmounted."""
        self._places.clear()
        self._mounts = None

    def place(self, folder: str) -> str | None:
        """Names the file system and the place in it of a folder of this machine, there or not; None
        where nothing is known of it."""
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
    """Whether a file that is not at its path may only be out of reach.

    `fields`: of its newest version; `seen_on`: the place of its folder when it was seen last;
    `within`: the folders of projects, in place of the present one.
    """
    folder = os.path.dirname(local)
    known = seen_on or fields.get("volume")
    if known is not None and volumes.place(folder) not in (known, None):
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
    """Whether a file cannot be looked at where it was, so that its newest version stays.

    `local`: where it is on this machine, None for nowhere; `within`: as for `is_away`.
    """
    if fields.get("state") == "deleted":
        return False
    if local is None:
        return True
    if os.path.lexists(local):
        return False
    return is_away(local, fields, filesystems, volumes, within=within)


def _nearest_folder(folder: str) -> str | None:
    """The folder, or the nearest one above it that can be seen; None where one of them may be there
    and cannot be looked at."""
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
            named = f"{_name_of(point)} {'/'.join(filter(None, inner.split('/')))}"
        else:
            named = _beside_linux(folder)
    except OSError:
        return None
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:_CHARS]


def _name_of(point: str) -> str:
    """Identifies what is mounted: by the file system's own id, which most take from their UUID."""
    number = os.statvfs(point).f_fsid if sys.platform != "win32" else 0
    return f"{number:x}" if number else f"device {os.stat(point).st_dev}"


def _beside_linux(folder: str) -> str:
    """Where the file system begins that a folder is on; on Windows also its serial number."""
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
    """Where something is mounted, and which folder of its file system that shows; empty where the
    system does not say."""
    try:
        text = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        found = [line.split(" ", 5)[3:5] for line in text.splitlines()]
    except (OSError, ValueError):
        return {}
    return {_spelt(point): _spelt(root) for root, point in found}


def _spelt(path: str) -> str:
    for escape, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(escape, char)
    return path

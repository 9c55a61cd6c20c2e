# Paths are strings here: not always UTF-8, thousands at a time.
# ruff: noqa: PTH116, PTH120
"""A folder's file system and place in it, to tell a missing file from a missing file system.

A mount is another place than the folder under it.
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

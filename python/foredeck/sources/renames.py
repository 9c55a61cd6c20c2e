"""Where a file that is gone may be now: found by its inode, which a rename keeps, or where that is
not known by its size."""

# Paths are strings here: not always UTF-8, thousands at a time.
# ruff: noqa: PTH116
from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress

FileNumber = tuple[int, int]
"""Device and inode: what a file keeps when it is renamed within one file system."""

SEARCHED_ENTRIES = 20_000
"""Most directory entries that one search looks at: some 20 ms."""

_PASSED_OVER = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
"""Folders that people do not move files to, and that have more entries than all the rest."""


def search_renamed(
    numbers: Set[FileNumber], near: Iterable[str], within: str
) -> dict[FileNumber, str]:
    """The paths that have these inodes now.

    Looks into the folders `near` first, then at everything below `within`, breadth first, until
    all are found or `SEARCHED_ENTRIES` were seen. Links are not followed.
    """
    found: dict[FileNumber, str] = {}
    for number, path in _walked(near, within):
        if number in numbers:
            found.setdefault(number, path)
            if len(found) == len(numbers):
                break
    return found


def search_sizes(sizes: Set[int], near: Iterable[str], within: str) -> list[str]:
    """Paths of files that have one of these sizes, from the same places."""
    found = []
    for _, path in _walked(near, within):
        with suppress(OSError, ValueError):  # gone since it was listed
            if os.lstat(path).st_size in sizes:
                found.append(path)
    return list(dict.fromkeys(found))


def _walked(near: Iterable[str], within: str) -> Iterator[tuple[FileNumber, str]]:
    left = SEARCHED_ENTRIES
    first, deeper = deque(dict.fromkeys(near)), deque([within])
    while left > 0 and (first or deeper):
        is_near = bool(first)
        files, folders = _entries(first.popleft() if is_near else deeper.popleft(), left)
        left -= len(files) + len(folders)
        if not is_near:
            deeper.extend(folders)
        yield from files


def _entries(folder: str, most: int) -> tuple[list[tuple[FileNumber, str]], list[str]]:
    """The files of a folder with their numbers, and the folders in it that are worth a look."""
    files: list[tuple[FileNumber, str]] = []
    folders: list[str] = []
    try:
        device = os.stat(folder).st_dev
        with os.scandir(folder) as entries:
            for entry, _ in zip(entries, range(most), strict=False):
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _PASSED_OVER:
                        folders.append(entry.path)
                elif not entry.is_symlink():
                    files.append(((device, entry.inode()), entry.path))
    except (OSError, ValueError):
        pass  # gone, or not for us to read
    return files, folders

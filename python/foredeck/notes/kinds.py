"""Which Markdown files are notes."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from functools import cache

NOTE = "note"

FindTop = Callable[[str], str | None]
"""From a folder to the top of the repository that it lies in, None for one in no repository."""


class NoteRule:
    """What `notes.folders` says, for many files: each folder is resolved once.

    A relative folder (`notes`, `.pi/notes`) is one at the top of the file's repository; for a file
    in no repository, or on another machine, any folder of that name above it.
    """

    def __init__(self, folders: Iterable[str], find_top: FindTop) -> None:
        self._folders = tuple(folders)
        self._top = cache(find_top)

    def is_note(self, path: str, kind: str | None) -> bool:
        """Whether a Markdown file is a note: by the property `kind`, else by where it lies."""
        if kind is not None:
            return kind == NOTE
        within = [folder for folder in self._folders if _is_within(path, folder)]
        return any(folder.startswith("/") or self._is_at_the_top(path, folder) for folder in within)

    def _is_at_the_top(self, path: str, folder: str) -> bool:
        top = self._top(posixpath.dirname(path))
        return top is None or path.startswith(f"{posixpath.join(top, folder.strip('/'))}/")


def _is_within(path: str, folder: str) -> bool:
    name = folder.strip("/")
    if not name:
        return False
    return path.startswith(f"/{name}/") if folder.startswith("/") else f"/{name}/" in path

"""Which Markdown files are notes."""

from __future__ import annotations

from collections.abc import Iterable

NOTE = "note"


def is_note(path: str, kind: str | None, folders: Iterable[str]) -> bool:
    """Whether a Markdown file is a note: by the property `kind`, else by a folder above it.

    `folders` are relative (`notes`, `.pi/notes`) and may lie anywhere above the file, or absolute.
    """
    if kind is not None:
        return kind == NOTE
    return any(_is_within(path, folder.strip("/"), folder) for folder in folders)


def _is_within(path: str, folder: str, given: str) -> bool:
    if not folder:
        return False
    return path.startswith(f"/{folder}/") if given.startswith("/") else f"/{folder}/" in path

"""Which folders are one project: a git repository with its worktrees, else the folder itself."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def project_of(folder: str) -> tuple[str, object]:
    """What two folders of one project have in common.

    A repository is known by its common git folder, which worktrees share; that, and a folder
    outside any repository, by its place in the file system. A folder that is not on this machine
    is known by its path.
    """
    for place in (Path(folder), *Path(folder).parents):
        common = _common_git_folder(place / ".git")
        if common is not None:
            return _identity(common)
    return _identity(Path(folder))


def folders_of_project(folder: str, folders: Iterable[str]) -> list[str]:
    """Those of `folders` that are of one project with `folder`."""
    wanted = project_of(folder)
    return [other for other in folders if project_of(other) == wanted]


def _common_git_folder(git: Path) -> Path | None:
    """The repository's own folder behind a `.git`: of a worktree that is a file, which names it."""
    if git.is_dir():
        return git
    try:
        named = git.read_text().partition("gitdir:")[2].strip()
    except (OSError, ValueError):
        return None
    if not named:
        return None
    own = git.parent / named
    try:
        return own / (own / "commondir").read_text().strip()
    except (OSError, ValueError):  # a submodule has a repository of its own
        return own


def _identity(path: Path) -> tuple[str, object]:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return "path", os.path.normpath(path)
    return "file", (status.st_dev, status.st_ino)

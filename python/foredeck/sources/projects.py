# Paths are strings here: an agent's, which need not be this machine's.
# ruff: noqa: PTH116, PTH118, PTH120
"""Which folders are one project, without running git."""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from foredeck.config import Config
from foredeck.model.documents import identity_hash
from foredeck.regular_files import read_text
from foredeck.sources.filesystem import (
    FilesystemMap,
    Location,
    is_within,
    nearest_status,
    open_filesystems,
)
from foredeck.store.store import Store

_MOST = 64 * 1024
_WORKTREE = re.compile(
    r'^[ \t]*worktree[ \t]*=[ \t]*"?([^"\n]*?)"?[ \t]*$', re.MULTILINE | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Project:
    """What an agent works on, across sessions.

    `id` follows from the repository's or folder's place, through links, worktrees and shared
    mounts.
    """

    id: str
    root: str = field(compare=False)
    name: str = field(compare=False)


def project_of(folder: str, filesystems: FilesystemMap) -> Project:
    """The project of `folder`, which need not exist; worktrees share a project, submodules do
    not."""
    start = filesystems.absolute(folder)
    git_folder = find_git(start, filesystems)
    if git_folder is None or git_folder.common is None:
        place = start if git_folder is None else git_folder.top
        return _project(place, place, filesystems)
    git = git_folder.common
    main = posixpath.dirname(git) if posixpath.basename(git) == ".git" else git_folder.top
    return _project(git, main, filesystems)


def project_at(config: Config, folder: str) -> Project:
    return project_of(folder, open_filesystems(config, folder))


def project_names(store: Store, config: Config) -> dict[str, str]:
    """Project names by id, from stored sessions."""
    folders = {str(head.fields.get("cwd") or "") for head in store.query("session")} - {""}
    names: dict[str, str] = {}
    for folder in sorted(folders):
        project = project_at(config, folder)
        names.setdefault(project.id, project.name)
    return names


def folders_of_project(
    folder: str, folders: Iterable[str], filesystems: FilesystemMap
) -> list[str]:
    """Those of `folders` in the same project as `folder`; an unknown one (`""`) is in none."""
    project = project_of(folder, filesystems)
    return [other for other in folders if other and project_of(other, filesystems) == project]


def checkout_of(folder: str, filesystems: FilesystemMap) -> str | None:
    """The top folder of the repository or worktree around `folder`."""
    git_folder = find_git(filesystems.absolute(folder), filesystems)
    return None if git_folder is None else git_folder.top


class ProjectFolders:
    """What foredeck may read unasked: the project, and the user's `others`."""

    def __init__(self, filesystems: FilesystemMap, others: Iterable[str] = ()) -> None:
        self._filesystems = filesystems
        self._others = tuple(others)

    def holds(self, place: Location) -> bool:
        """Whether a file is there. Files invisible here are not read."""
        return place.local is None or any(is_within(place.local, top) for top in self._real)

    def leads_out(self, named: Location, place: Location) -> bool:
        """Whether a file named in the project lies outside, behind a link."""
        if named.local is None or named.local == place.local or self.holds(place):
            return False
        return any(is_within(named.local, top) for top in (*self._named, *self._real))

    @cached_property
    def _named(self) -> list[str]:
        files = self._filesystems
        top = checkout_of(files.cwd, files) or files.cwd
        return [posixpath.join(top, other) for other in ("", *self._others)]

    @cached_property
    def _real(self) -> list[str]:
        locals_ = (self._filesystems.locate(folder).local for folder in self._named)
        return [local for local in locals_ if local is not None]


def is_outside(name: str) -> bool:
    """Whether a note folder lies outside the project; only users may name such."""
    return posixpath.isabs(name) or ".." in name.split("/")


def _project(place: str, root: str, filesystems: FilesystemMap) -> Project:
    source = filesystems.locate(place).source
    return Project(identity_hash("project", source), root, posixpath.basename(root) or root)


class GitFolder(NamedTuple):
    """The `.git` above a folder.

    `own`: this working tree's git folder. `common`: the one shared with worktrees.
    """

    top: str
    own: str | None
    common: str | None


def find_git(folder: str, filesystems: FilesystemMap) -> GitFolder | None:
    """The nearest `.git` at or above an absolute folder."""
    owners: set[int] | None = None
    for place in upwards(folder):
        path = posixpath.join(place, ".git")
        local = filesystems.locate(path, follow=False).local
        if local is None:
            continue
        try:
            status = os.stat(local)
        except (OSError, ValueError):
            continue
        if place != folder:
            # In a folder that others write to, such as /tmp, anybody may leave a `.git`.
            owners = _owners(folder, filesystems) if owners is None else owners
            if status.st_uid not in owners:
                continue
        if stat.S_ISDIR(status.st_mode):
            return _with_folder(place, path, filesystems)
        if stat.S_ISREG(status.st_mode):
            target = _text_of(path, filesystems).partition("gitdir:")[2].strip()
            if target:
                return _with_file(place, path, posixpath.join(place, target), filesystems)
    return None


def upwards(folder: str) -> Iterator[str]:
    """A folder and those above it."""
    yield folder
    while (parent := posixpath.dirname(folder)) != folder:
        folder = parent
        yield folder


def _owners(folder: str, filesystems: FilesystemMap) -> set[int]:
    """Trusted owners of git folders: the folder's owner, this user, root."""
    owners = {0, os.geteuid()} if hasattr(os, "geteuid") else {0}
    status = nearest_status(filesystems.locate(folder).local or "/")
    return owners if status is None else owners | {status.st_uid}


def _with_folder(place: str, path: str, filesystems: FilesystemMap) -> GitFolder:
    local = filesystems.locate(path, follow=False).local or ""
    real, top = os.path.realpath(local), os.path.realpath(os.path.dirname(local))
    is_own = real == os.path.join(top, ".git") or _is_worktree_of(real, top)
    return GitFolder(place, path if is_own else None, path if is_own else None)


def _with_file(place: str, path: str, named: str, filesystems: FilesystemMap) -> GitFolder:
    # Whoever makes a repository writes its `.git`, and may let that point to another repository. So
    # another folder counts only where it points back: a worktree's git folder names the worktree,
    # that of a submodule has it as `core.worktree`.
    own = posixpath.normpath(named)
    common_text = _text_of(posixpath.join(own, "commondir"), filesystems)
    if not common_text:
        local, top = filesystems.locate(own).local, filesystems.locate(place).local
        is_own = local is not None and top is not None and _is_worktree_of(local, top)
        return GitFolder(place, own if is_own else None, own if is_own else None)
    common = posixpath.normpath(posixpath.join(own, common_text))
    back = _text_of(posixpath.join(own, "gitdir"), filesystems)
    above = posixpath.dirname(posixpath.dirname(own))
    lies_within = filesystems.locate(above) == filesystems.locate(common)
    if lies_within and back and _leads_to(posixpath.join(own, back), path, filesystems):
        return GitFolder(place, own, common)
    return GitFolder(place, None, None)


def _is_worktree_of(git: str, top: str) -> bool:
    """Whether a git folder's configuration names `top` as working tree."""
    try:
        match = _WORKTREE.search(read_text(os.path.join(git, "config"), _MOST))
    except (OSError, ValueError):
        return False
    work_tree = match and os.path.realpath(os.path.join(git, match[1]))
    return bool(work_tree) and work_tree == os.path.realpath(top)


def _leads_to(name: str, path: str, filesystems: FilesystemMap) -> bool:
    place = filesystems.locate(path)
    return place in (filesystems.locate(name), filesystems.locate_local(name))


def _text_of(path: str, filesystems: FilesystemMap) -> str:
    local = filesystems.locate(path).local
    try:
        return "" if local is None else read_text(local, _MOST).strip()
    except (OSError, ValueError):
        return ""

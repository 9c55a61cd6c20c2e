"""Which folders are one project: a git repository with its worktrees, else the folder itself."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass, field

from foredeck.model.documents import identity_hash
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.git_folder import find_git


@dataclass(frozen=True, slots=True)
class Project:
    """What an agent works on, with what belongs to it across sessions.

    `id` (64 hexadecimal digits) follows from where the repository, or the folder, lies: it is
    the same through every link and worktree, and on all machines that share the folder by a
    mount. `root` and `name` are for people: the repository's main folder as the agent names it,
    and its last part.
    """

    id: str
    root: str = field(compare=False)
    name: str = field(compare=False)


def project_of(folder: str, filesystems: FilesystemMap) -> Project:
    """The project that `folder` is in. The folder need not exist.

    A repository is known by its common git folder, which worktrees share; a submodule is a
    repository of its own, and so is a folder whose `.git` points to a repository that does not
    point back. Of what cannot be read from here the path alone counts.
    """
    start = filesystems.absolute(folder)
    found = find_git(start, filesystems)
    if found is None or found.common is None:
        place = start if found is None else found.top
        return _project(place, place, filesystems)
    git = found.common
    main = posixpath.dirname(git) if posixpath.basename(git) == ".git" else found.top
    return _project(git, main, filesystems)


def folders_of_project(
    folder: str, folders: Iterable[str], filesystems: FilesystemMap
) -> list[str]:
    """Those of `folders` that are of one project with `folder`."""
    wanted = project_of(folder, filesystems)
    return [other for other in folders if project_of(other, filesystems) == wanted]


def checkout_of(folder: str, filesystems: FilesystemMap) -> str | None:
    """The top folder of the repository or the worktree that `folder` lies in; None for none."""
    found = find_git(filesystems.absolute(folder), filesystems)
    return None if found is None else found.top


def _project(place: str, root: str, filesystems: FilesystemMap) -> Project:
    source = filesystems.locate(place).source
    return Project(identity_hash("project", source), root, posixpath.basename(root) or root)

"""Which folders are one project: a git repository with its worktrees, else the folder itself."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from foredeck.model.documents import identity_hash
from foredeck.sources.filesystem import FilesystemMap, Location, is_within
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


class ProjectFolders:
    """What foredeck may read though no tool and no user has asked for it: the top folder of the
    project that `filesystems.cwd` lies in, and what is below, links resolved; and `others`, which
    the user has named."""

    def __init__(self, filesystems: FilesystemMap, others: Iterable[str] = ()) -> None:
        self._filesystems = filesystems
        self._others = tuple(others)

    def holds(self, place: Location) -> bool:
        """Whether a file is there. What this machine cannot see is not read."""
        return place.local is None or any(is_within(place.local, top) for top in self._real)

    def leads_out(self, named: Location, place: Location) -> bool:
        """Whether a file that is named in the project lies outside it, behind a link."""
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
        found = (self._filesystems.locate(folder).local for folder in self._named)
        return [local for local in found if local is not None]


def is_outside(name: str) -> bool:
    """Whether a folder of notes is named outside the project: only the user may name such a one."""
    return posixpath.isabs(name) or ".." in name.split("/")


def _project(place: str, root: str, filesystems: FilesystemMap) -> Project:
    source = filesystems.locate(place).source
    return Project(identity_hash("project", source), root, posixpath.basename(root) or root)

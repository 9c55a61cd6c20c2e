"""Which folders are one project: a git repository with its worktrees, else the folder itself."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from foredeck.model.documents import identity_hash
from foredeck.sources.filesystem import FilesystemMap


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
    repository of its own. Of what cannot be read from here the path alone counts.
    """
    start = filesystems.absolute(folder)
    for place in _upwards(start):
        git = _common_git_folder(posixpath.join(place, ".git"), filesystems)
        if git is not None:
            main = posixpath.dirname(git) if posixpath.basename(git) == ".git" else place
            return _project(git, main, filesystems)
    return _project(start, start, filesystems)


def folders_of_project(
    folder: str, folders: Iterable[str], filesystems: FilesystemMap
) -> list[str]:
    """Those of `folders` that are of one project with `folder`."""
    wanted = project_of(folder, filesystems)
    return [other for other in folders if project_of(other, filesystems) == wanted]


def checkout_of(folder: str, filesystems: FilesystemMap) -> str | None:
    """The top folder of the repository or the worktree that `folder` lies in; None for none."""
    for place in _upwards(filesystems.absolute(folder)):
        if _common_git_folder(posixpath.join(place, ".git"), filesystems) is not None:
            return place
    return None


def _project(place: str, root: str, filesystems: FilesystemMap) -> Project:
    source = filesystems.locate(place).source
    return Project(identity_hash("project", source), root, posixpath.basename(root) or root)


def _upwards(folder: str) -> Iterator[str]:
    yield folder
    while (parent := posixpath.dirname(folder)) != folder:
        folder = parent
        yield folder


def _common_git_folder(git: str, filesystems: FilesystemMap) -> str | None:
    """The repository's own folder behind a `.git`: of a worktree that is a file, which names it."""
    here = filesystems.locate(git).local
    if here is None:
        return None
    if Path(here).is_dir():
        return git
    named = _text_of(git, filesystems).partition("gitdir:")[2].strip()
    if not named:
        return None
    own = posixpath.normpath(posixpath.join(posixpath.dirname(git), named))
    common = _text_of(posixpath.join(own, "commondir"), filesystems)  # a submodule has none
    return posixpath.normpath(posixpath.join(own, common)) if common else own


def _text_of(path: str, filesystems: FilesystemMap) -> str:
    """The text of a small file of git's, "" where there is none."""
    here = filesystems.locate(path).local
    try:
        return "" if here is None else Path(here).read_text().strip()
    except (OSError, ValueError):
        return ""

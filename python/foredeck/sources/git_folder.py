# Paths are strings here: an agent's, which need not be this machine's.
# ruff: noqa: PTH116, PTH118, PTH120
"""Where git keeps what it knows of a folder: its `.git`, read without running anything.

Whoever makes a repository writes its `.git`, too, and may let that point to another
repository. So another folder counts only where it points back: the git folder of a worktree
names the worktree, that of a submodule has it as `core.worktree`.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from foredeck.regular_files import read_text
from foredeck.sources.filesystem import FilesystemMap

_MOST = 64 * 1024
_WORKTREE = re.compile(
    r'^[ \t]*worktree[ \t]*=[ \t]*"?([^"\n]*?)"?[ \t]*$', re.MULTILINE | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class GitFolder:
    """The `.git` above a folder. Paths are the agent's.

    `top`: the folder that it is in. `own`: the git folder of this working tree; None where it
    points to one that does not point back. `common`: what it shares with its worktrees.
    """

    top: str
    own: str | None
    common: str | None


def find_git(folder: str, filesystems: FilesystemMap) -> GitFolder | None:
    """The nearest `.git` at `folder` (absolute) or above it; None for none."""
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
            # In a folder that others write to anybody may leave one.
            owners = _owners(folder, filesystems) if owners is None else owners
            if status.st_uid not in owners:
                continue
        if stat.S_ISDIR(status.st_mode):
            return _with_folder(place, path, filesystems)
        if stat.S_ISREG(status.st_mode):
            named = _text_of(path, filesystems).partition("gitdir:")[2].strip()
            if named:
                return _with_file(place, path, posixpath.join(place, named), filesystems)
    return None


def upwards(folder: str) -> Iterator[str]:
    """A folder and those above it."""
    yield folder
    while (parent := posixpath.dirname(folder)) != folder:
        folder = parent
        yield folder


def _owners(folder: str, filesystems: FilesystemMap) -> set[int]:
    """Whose git folders count above `folder`: of whoever owns it, of this user, of root."""
    found = {0, os.geteuid()} if hasattr(os, "geteuid") else {0}
    local = filesystems.locate(folder).local
    for place in upwards(local or "/"):
        try:
            return found | {os.stat(place).st_uid}
        except (OSError, ValueError):
            continue
    return found


def _with_folder(place: str, path: str, filesystems: FilesystemMap) -> GitFolder:
    local = filesystems.locate(path, follow=False).local or ""
    real, top = os.path.realpath(local), os.path.realpath(os.path.dirname(local))
    is_own = real == os.path.join(top, ".git") or _is_worktree_of(real, top)
    return GitFolder(place, path if is_own else None, path if is_own else None)


def _with_file(place: str, path: str, named: str, filesystems: FilesystemMap) -> GitFolder:
    own = posixpath.normpath(named)
    common_text = _text_of(posixpath.join(own, "commondir"), filesystems)
    if not common_text:
        local, top = filesystems.locate(own).local, filesystems.locate(place).local
        is_own = local is not None and top is not None and _is_worktree_of(local, top)
        return GitFolder(place, own if is_own else None, own if is_own else None)
    common = posixpath.normpath(posixpath.join(own, common_text))
    back = _text_of(posixpath.join(own, "gitdir"), filesystems)
    lies_within = _same(posixpath.dirname(posixpath.dirname(own)), common, filesystems)
    if lies_within and back and _leads_to(posixpath.join(own, back), path, filesystems):
        return GitFolder(place, own, common)
    return GitFolder(place, None, None)


def _is_worktree_of(git: str, top: str) -> bool:
    """Whether the configuration of a git folder names `top` as its working tree."""
    try:
        found = _WORKTREE.search(read_text(os.path.join(git, "config"), _MOST))
    except (OSError, ValueError):
        return False
    named = found and os.path.realpath(os.path.join(git, found[1]))
    return bool(named) and named == os.path.realpath(top)


def _leads_to(name: str, path: str, filesystems: FilesystemMap) -> bool:
    """Whether `name` is the file at `path`. Outside a container git has written its own path."""
    wanted = filesystems.locate(path)
    return wanted in (filesystems.locate(name), filesystems.locate_local(name))


def _same(first: str, second: str, filesystems: FilesystemMap) -> bool:
    return filesystems.locate(first) == filesystems.locate(second)


def _text_of(path: str, filesystems: FilesystemMap) -> str:
    """The text of a small file of git's, "" where there is none."""
    local = filesystems.locate(path).local
    try:
        return "" if local is None else read_text(local, _MOST).strip()
    except (OSError, ValueError):
        return ""

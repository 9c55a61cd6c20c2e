# Paths are strings here: not always UTF-8.
# ruff: noqa: PTH118
"""How the files of a checkout were before a command, and which it changed, by git."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from foredeck.model.messages import put_blob
from foredeck.model.records import MISSING, PathState
from foredeck.sources.git_process import Git, GitUnusable, NoRepository, RunningGit, opened_git
from foredeck.timeline.states import Captured, capture

AFTER_S = 3.0
"""Seconds for git after a command, when no request waits."""
MAX_PATHS = 20_000
"""Changed files whose bytes are requested."""
MAX_BYTES = 2 * 1024 * 1024
"""Of one file."""
ALL_BYTES = 64 * 1024 * 1024
"""Of all together."""
CLOCK_NS = 20_000_000
"""How far file times may lag behind the clock."""
_DIFFER = ("diff-index", "--raw", "-z", "--no-renames", "--relative", "--ignore-submodules=all")
_UNTRACKED = ("ls-files", "-z", "--others", "--exclude-standard")
_CONVERTED = ("filter", "ident", "eol", "working-tree-encoding")
"""Attributes that change bytes between disk and git."""
_LINK, _SUBMODULE = "120000", "160000"


class RepositoryLook(NamedTuple):
    """A working folder before a command."""

    folder: str
    began_ns: int
    commit: str
    differing: frozenset[str]
    """Tracked files that differ from the commit."""
    untracked: frozenset[str]

    @property
    def paths(self) -> list[str]:
        """Files whose content only the disk has."""
        return sorted(self.differing | self.untracked)


class _Differing(NamedTuple):
    """A path that differs from a commit; `status` is `U` in an unfinished merge."""

    path: str
    mode: str
    digest: str
    status: str

    @property
    def is_new(self) -> bool:
        """Whether the commit lacks it."""
        return not self.digest.strip("0")


def look_at(folder: str, until: float) -> RepositoryLook | None:
    """Git's view of the folder; None outside git, or after `until` (`time.monotonic`)."""
    # By plumbing, which compares time stamps: `git status` would also look for renames.
    began_ns = time.time_ns()
    queries = [("rev-parse", "HEAD"), (*_DIFFER, "HEAD"), _UNTRACKED]
    try:
        with opened_git(folder) as git:
            commit, differing, untracked = _all_said(git, queries, until)
    except GitUnusable:
        return None
    return RepositoryLook(
        folder,
        began_ns,
        commit.decode().strip(),
        frozenset(entry.path for entry in _raw(folder, differing)),
        frozenset(_paths(folder, untracked)),
    )


def changed_since(before: RepositoryLook) -> dict[str, Captured | None] | None:
    """Before-images by path of files changed since, beyond `before.paths`; a None value is unknown.
    Returns None if git fails."""
    until = time.monotonic() + AFTER_S
    try:
        with opened_git(before.folder) as git:
            return _changed_since(before, git, until)
    except GitUnusable:
        return None


def _changed_since(before: RepositoryLook, git: Git, until: float) -> dict[str, Captured | None]:
    outputs = _all_said(git, [(*_DIFFER, before.commit), _UNTRACKED], until)
    # What differed before has been read from the disk: git does not have those bytes.
    old_paths = before.differing | before.untracked
    differing = [images for images in _raw(git.folder, outputs[0]) if images.path not in old_paths]
    new = [path for path in _paths(git.folder, outputs[1]) if path not in old_paths]
    new += [each.path for each in differing if each.is_new]
    tracked = [each for each in differing if not each.is_new and each.mode != _SUBMODULE]
    images: dict[str, Captured | None] = {
        path: Captured(MISSING) for path in new if not _is_older(path, before.began_ns)
    }
    images |= _as_committed(git, tracked, until)
    return images | {each.path: None for each in differing if each.status == "U"}


def ignored(folder: str, paths: Iterable[str], until: float) -> list[str] | None:
    """Those paths that git ignores; empty outside git, None if git fails."""
    input = b"".join(os.fsencode(path) + b"\0" for path in paths)
    try:
        with opened_git(folder) as git:
            answer = git.run("check-ignore", "-z", "--stdin", until=until, given=input)
    except NoRepository:
        return []
    except GitUnusable:
        return None
    # 1: none of them is ignored.
    return None if answer.code > 1 else [os.fsdecode(p) for p in answer.out.split(b"\0") if p]


def _is_older(path: str, began_ns: int) -> bool:
    try:
        return os.lstat(path).st_ctime_ns < began_ns - CLOCK_NS
    except OSError:
        return False


def _as_committed(
    git: Git, files: Sequence[_Differing], until: float
) -> dict[str, Captured | None]:
    images: dict[str, Captured | None] = {each.path: None for each in files}
    if not files or _converts_line_ends(git, until):
        return images
    # A filter, or another encoding, makes other bytes of a blob when it is checked out.
    batch = files[:MAX_PATHS]
    converted = _converted(git, batch, until)
    plain = [each for each in batch if each.path not in converted]
    texts = _blobs(git, {each.digest for each in plain}, until)
    for each in plain:
        if (data := texts.get(each.digest)) is not None:
            images[each.path] = _captured(each, data)
    return images


def _captured(file: _Differing, data: bytes) -> Captured:
    if file.mode == _LINK:
        return Captured(PathState(kind="link", target=os.fsdecode(data)))
    # Git keeps no more of the permissions than whether a file can be run.
    current_mode = capture(file.path).state.mode
    mode = 0o644 if current_mode is None else current_mode & ~0o111
    if file.mode == "100755":
        mode |= (mode & 0o444) >> 2
    digest = put_blob(data, {})
    return Captured(PathState(kind="file", digest=digest, mode=mode, size=len(data)), data)


def _converts_line_ends(git: Git, until: float) -> bool:
    output = _said(git, ("config", "--get-regexp", r"^core\.(autocrlf|eol)$"), until, b"")
    settings = dict(line.split(" ", 1) for line in (output or b"").decode().lower().splitlines())
    return settings.get("core.autocrlf") == "true" or settings.get("core.eol") == "crlf"


def _converted(git: Git, files: Iterable[_Differing], until: float) -> set[str]:
    """Files whose bytes on disk may differ from the commit's."""
    names = b"".join(os.fsencode(os.path.relpath(f.path, git.folder)) + b"\0" for f in files)
    output = _said(git, ("check-attr", "-z", "--stdin", *_CONVERTED), until, names)
    if output is None:
        return {each.path for each in files}
    fields = output.split(b"\0")
    return {
        os.path.join(git.folder, os.fsdecode(path))
        for path, value in zip(fields[::3], fields[2::3], strict=False)
        if value not in (b"unspecified", b"unset")
    }


def _blobs(git: Git, digests: set[str], until: float) -> dict[str, bytes]:
    request = "".join(f"{digest}\n" for digest in sorted(digests)).encode()
    sizes = _said(git, ("cat-file", "--batch-check"), until, request) or b""
    small, room = [], ALL_BYTES
    for line in sizes.splitlines():
        digest, kind, *rest = line.split()
        if kind == b"blob" and int(rest[0]) <= min(MAX_BYTES, room):
            small.append(digest)
            room -= int(rest[0])
    output = _said(git, ("cat-file", "--batch"), until, b"".join(d + b"\n" for d in small)) or b""
    contents, at = {}, 0
    while (end := output.find(b"\n", at)) > 0:
        digest, _, size = output[at:end].split()
        contents[digest.decode()] = output[end + 1 : end + 1 + int(size)]
        at = end + int(size) + 2
    return contents


def _raw(folder: str, said: bytes) -> Iterator[_Differing]:
    """`:MODE MODE DIGEST DIGEST STATUS` and the path, each zero-terminated."""
    fields = said.split(b"\0")
    for head, path in zip(fields[::2], fields[1::2], strict=False):
        mode, _, digest, _, status = head.decode().removeprefix(":").split(" ")
        yield _Differing(os.path.join(folder, os.fsdecode(path)), mode, digest, status)


def _paths(folder: str, said: bytes) -> Iterator[str]:
    """Files; nested repositories end with a slash."""
    for name in said.split(b"\0"):
        if name and not name.endswith(b"/"):
            yield os.path.join(folder, os.fsdecode(name))


def _said(git: Git, arguments: Sequence[str], until: float, given: bytes) -> bytes | None:
    """Git's output; None on failure or delay."""
    try:
        answer = git.run(*arguments, until=until, given=given)
    except GitUnusable:
        return None
    return answer.out if answer.code == 0 else None


def _all_said(git: Git, asked: Iterable[Sequence[str]], until: float) -> list[bytes]:
    """Outputs of parallel queries. Raises `GitUnusable`."""
    # The command waits for these: together they take as long as the slowest.
    started: list[RunningGit] = []
    outputs = []
    try:
        for arguments in asked:
            started.append(git.start(*arguments, until=until))
        while started:
            answer = started.pop(0).end(until)
            if answer.code:
                raise GitUnusable(answer.said)
            outputs.append(answer.out)
    finally:
        for running in started:
            running.kill()
    return outputs

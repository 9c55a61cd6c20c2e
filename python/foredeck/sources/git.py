"""Names of things outside the disk: `git:REV:PATH`, URLs, `s3://`, `row:`.

Only files of commits are read.
"""

from __future__ import annotations

import difflib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

from foredeck.errors import ToolError
from foredeck.model.documents import FileDocument, PointerDocument, Provenance, identity_hash
from foredeck.model.figures import some_of
from foredeck.model.quoting import name as quote
from foredeck.model.sources import GitSource, PointerSource, RowSource, S3Source, UrlSource
from foredeck.sources.git_process import Git, GitAnswer, GitTimeout, GitUnusable, opened_git
from foredeck.sources.looking import decode
from foredeck.sources.snapshots import file_type_of

DEADLINE_S = 2.5
NEAR = 5
"""How many near paths an error names."""

MAX_LISTED_BYTES = 4 * 1024 * 1024

MAX_BYTES = 512 * 1024 * 1024
"""Of other output; exceeds the largest blob read."""

MAX_NAME_CHARS = 4096

_SCP = re.compile(r"(?:[^@/]+@)?([\w.-]{2,}):(?!//)(.+)")
_BLOB = re.compile(r"[0-9a-f]{7,64}")
_BLAME_HEADER = re.compile(r"(?P<commit>[0-9a-f]{40,64}) \d+ (?P<line>\d+)")


class GitName(NamedTuple):
    revision: str
    path: str


def git_name(name: str) -> GitName | None:
    """The parts of `git:REV:PATH` or `git:BLOB`; None for other names. Raises `ToolError` if a part
    is missing."""
    if name[:4].lower() != "git:":
        return None
    revision, colon, path = name[4:].strip().partition(":")
    if revision and colon and path:
        return GitName(revision, path)
    if not colon and _BLOB.fullmatch(revision):
        return GitName(revision, "")
    raise ToolError(
        f"{name!r} lacks a part: write git:REV:PATH, such as git:HEAD~3:src/a.py, or git:BLOB with "
        "at least 7 digits of the blob's id."
    )


def pointer(name: str) -> PointerDocument:
    """The object of a URL, S3 object or row. Raises `ToolError` for other names."""
    name = name.strip()
    if len(name) > MAX_NAME_CHARS:
        raise ToolError(f"A pointer has {MAX_NAME_CHARS:,} characters at most.")
    source, locator = _row(name) if name[:4].lower() == "row:" else _web(name)
    return PointerDocument.of(source, locator, _file_type(source))


def _web(name: str) -> tuple[PointerSource, str]:
    try:
        parts = urlsplit(name)
        host = parts.netloc.rpartition("@")[2].lower()  # a password is nobody's business
        _ = parts.port
    except ValueError as error:
        raise ToolError(f"{name!r} is no URL: {error}.") from error
    key = parts.path.lstrip("/")
    if parts.scheme == "s3":
        bucket = parts.netloc
        if not bucket or not key:
            raise ToolError(f"{name!r} lacks a part: write s3://BUCKET/KEY.")
        rest = name.partition("://")[2].partition("/")[2]
        return S3Source(bucket=bucket, key=rest), f"s3://{bucket}/{rest}"
    if not host:
        raise ToolError(f"{name!r} names no host: write https://HOST/PATH.")
    url = urlunsplit((parts.scheme, host, parts.path or "/", parts.query, parts.fragment))
    return UrlSource(url=url), url


def _row(name: str) -> tuple[PointerSource, str]:
    database, *rest = name[4:].rsplit("/", 2)
    if not database or len(rest) < 2 or not all(rest):
        raise ToolError(f"{name!r} lacks a part: write row:DATABASE/TABLE/KEY.")
    table, key = rest
    return RowSource(database=database, table=table, key=key), f"row:{database}/{table}/{key}"


def _file_type(source: PointerSource) -> str:
    if isinstance(source, UrlSource):
        return file_type_of(urlsplit(source.url).path)
    return file_type_of(source.key) if isinstance(source, S3Source) else ""


@contextmanager
def repository(folder: str, project: str = "") -> Iterator[Repository]:
    """Opens the git repository of a local folder. Raises `ToolError`."""
    # For all commands together: the model waits for the answer.
    end = time.monotonic() + DEADLINE_S
    try:
        with opened_git(folder) as git:
            yield Repository(git, project, end)
    except GitTimeout as error:
        raise ToolError(
            f"git took longer than {DEADLINE_S:g} s in {folder}: try again, or read the file with "
            "git show."
        ) from error
    except GitUnusable as error:
        raise ToolError(str(error)) from error


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository, open within `repository`."""

    _git: Git
    _project: str
    _end: float

    def document(self, name: GitName, max_bytes: int) -> FileDocument:
        """The object of a commit's file, or of a blob; without content above `max_bytes`. Raises
        `ToolError`."""
        if name.path:
            ref, path, blob = self._in_commit(name)
        else:
            ref = blob = self._resolved(f"{name.revision}^{{blob}}", name.revision)
            path = ""
        size = int(self._run("cat-file", "-s", blob))
        text, state = None, "huge"
        if size <= max_bytes:
            text = decode(self._run("cat-file", "blob", blob))
            state = "binary" if text is None else "text"
        source = GitSource(repo=self._name, ref=ref, path=path)
        fields = {
            "id": identity_hash("file", source),
            "source": source,
            "content": text,
            "source_hash": blob,
            "file_type": file_type_of(path),
            "char_count": len(text or ""),
            "state": state,
            "size": size,
            "provenance": Provenance(origin="git", generator="system"),
        }
        return FileDocument.model_validate(fields).seal()

    def commit(self, revision: str) -> str:
        """The full commit id of a revision. Raises `ToolError`."""
        return self._resolved(f"{revision}^{{commit}}", revision)

    def contains(self, commit: str) -> bool:
        """Whether the checkout descends from a commit. Raises `ToolError`."""
        return self._try("merge-base", "--is-ancestor", commit, "HEAD").code == 0

    def blamed(self, name: str) -> list[tuple[str, str]]:
        """The committed lines of a file, each with its commit. Raises `ToolError`."""
        # Of the file on the disk git would convert the bytes first.
        output = self._run("blame", "--porcelain", "--no-textconv", "HEAD", "--", name)
        return list(_blamed(output.decode(errors="replace")))

    def _in_commit(self, name: GitName) -> tuple[str, str, str]:
        commit = self._resolved(f"{name.revision}^{{commit}}", name.revision)
        prefix = self._run("rev-parse", "--show-prefix").decode(errors="surrogateescape").strip()
        relative = os.path.normpath(os.path.join(prefix, name.path))  # noqa: PTH118
        # As git itself writes names, from the root; else as the agent may mean it, from its folder.
        for path in dict.fromkeys((os.path.normpath(name.path), relative)):
            if path.startswith(("/", "../")) or path in (".", ".."):
                continue
            listed = self._run("ls-tree", "-z", "--full-tree", commit, "--", path)
            if listed:
                _, kind, blob = listed.partition(b"\t")[0].decode().split()
                if kind != "blob":
                    raise ToolError(self._not_a_file(commit, path, kind))
                return commit, path, blob
        raise ToolError(self._no_such_path(commit, name))

    def _resolved(self, expression: str, asked: str) -> str:
        answer = self._try("rev-parse", "--verify", "--quiet", "--end-of-options", expression)
        output = answer.out.decode(errors="replace").strip()
        if answer.code or not output:
            raise ToolError(
                f"git knows no {asked!r} in {self._git.folder}: give a branch, a tag, HEAD~N, or "
                "more of the id. `git log --oneline` lists commits."
            )
        return output.splitlines()[-1]

    def _not_a_file(self, commit: str, path: str, kind: str) -> str:
        if kind != "tree":
            return f"{path} is a submodule in {commit[:12]}: ask in its own folder."
        listed = self._names(
            "ls-tree", "-z", "--name-only", "--full-tree", commit, "--", f"{path}/"
        )
        return f"{path} is a folder in {commit[:12]}: {some_of([*map(quote, listed)], NEAR)}."

    def _no_such_path(self, commit: str, name: GitName) -> str:
        paths = self._names("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
        last = name.path.rpartition("/")[2]
        near = [path for path in paths if path.rpartition("/")[2] == last][:NEAR]
        near = near or difflib.get_close_matches(name.path, paths[:20_000], n=NEAR, cutoff=0.6)
        quoted_paths = ", ".join(map(quote, near))
        hint = f" Nearest: {quoted_paths}." if near else " Paths start at the repository's root."
        return f"There is no {name.path!r} in {name.revision} ({commit[:12]}).{hint}"

    def _names(self, *arguments: str) -> list[str]:
        listed = self._try(*arguments, most=MAX_LISTED_BYTES).out
        return [os.fsdecode(name) for name in listed.split(b"\0") if name]

    @property
    def _name(self) -> str:
        return shared_name(self._git.origin) or self._project

    def _run(self, *arguments: str) -> bytes:
        answer = self._try(*arguments)
        if answer.code:
            raise ToolError(f"git {arguments[0]} failed in {self._git.folder}: {answer.said}")
        return answer.out

    def _try(self, *arguments: str, most: int = MAX_BYTES) -> GitAnswer:
        return self._git.run(*arguments, until=self._end, most=most)


def _blamed(porcelain: str) -> Iterator[tuple[str, str]]:
    """Commits and lines from `git blame --porcelain`."""
    commit = ""
    for line in porcelain.split("\n"):
        header = _BLAME_HEADER.match(line)
        if line.startswith("\t"):
            yield commit, line[1:]
        elif header is not None:
            commit = header["commit"]


def shared_name(url: str) -> str:
    """A remote's name on every machine: `github.com/user/repo`."""
    scp = _SCP.fullmatch(url)
    if scp is not None and "://" not in url:
        host, path = scp[1], scp[2]
    else:
        parts = urlsplit(url)
        if parts.scheme in ("", "file") or not parts.netloc:
            return ""
        host, path = parts.netloc.rpartition("@")[2], parts.path
    path = path.strip("/").removesuffix(".git")
    return f"{host.lower()}/{path}" if path else ""

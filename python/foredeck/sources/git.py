"""Files as of a commit, read through the git command. Nothing is written, and nothing fetched.

Only what git has stored is asked for, never the working tree, so that no hook, filter or monitor
of the repository's runs. All commands about one name share one deadline.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from foredeck.errors import ToolError
from foredeck.model.documents import FileDocument, Provenance, identity_hash
from foredeck.model.sources import GitSource
from foredeck.sources.classify import decode
from foredeck.sources.pointers import GitName
from foredeck.sources.versions import file_type_of

DEADLINE_S = 5.0
NEAR = 5
"""How many paths are named where the one that was asked for is not there."""

MAX_LISTED_BYTES = 4 * 1024 * 1024
"""How many bytes of the names in a commit are searched for near ones."""

_SCP = re.compile(r"(?:[^@/]+@)?([\w.-]{2,}):(?!//)(.+)")
_BLAME_HEADER = re.compile(r"(?P<commit>[0-9a-f]{40,64}) \d+ (?P<line>\d+)")
_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    # A partial clone would otherwise fetch what it lacks.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_LITERAL_PATHSPECS": "1",
    "LC_ALL": "C",
}
_OF_ANOTHER_REPOSITORY = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
)
"""Left out: set where git itself has started us, as in a hook, they would make git look there
and not in the folder."""


@dataclass(slots=True)
class Repository:
    """The git repository that a folder of this machine is in.

    `project`: what to call it where it has no remote that others know it by.
    """

    folder: str
    project: str
    _end: float = field(default_factory=lambda: time.monotonic() + DEADLINE_S)

    def document(self, name: GitName, max_bytes: int) -> FileDocument:
        """The sealed object of a file as of a commit, or of a blob.

        Content of more than `max_bytes` is left out. Raises `ToolError` with what to do.
        """
        self._check()
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
        source = GitSource(repo=self._name(), ref=ref, path=path)
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
        """The full id of the commit that a revision means. Raises `ToolError`."""
        self._check()
        return self._resolved(f"{revision}^{{commit}}", revision)

    def contains(self, commit: str) -> bool:
        """Whether what is checked out goes back to a commit. Raises `ToolError`."""
        return self._try("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0

    def commits_of(self, name: str) -> dict[int, str]:
        """By line of a file of the folder, from 1, the commit that has it as it is on the disk.

        Lines that are in no commit yet are left out. Raises `ToolError` where git does not know
        the file, is not there, or takes too long.
        """
        blamed = self._run("-c", "core.fsmonitor=false", "blame", "--porcelain", "--", name)
        return dict(_blamed(blamed.decode(errors="replace")))

    def _check(self) -> None:
        done = self._try("rev-parse", "--git-dir")
        if done.returncode:
            said = _said(done)
            if "not a git repository" in said:
                raise ToolError(f"{self.folder} is in no git repository.")
            raise ToolError(f"git cannot read the repository of {self.folder}: {said}")

    def _in_commit(self, name: GitName) -> tuple[str, str, str]:
        """The commit, the path from the root, and the blob of a name."""
        commit = self._resolved(f"{name.revision}^{{commit}}", name.revision)
        prefix = self._run("rev-parse", "--show-prefix").decode(errors="surrogateescape").strip()
        relative = os.path.normpath(os.path.join(prefix, name.path))  # noqa: PTH118
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
        done = self._try("rev-parse", "--verify", "--quiet", "--end-of-options", expression)
        found = done.stdout.decode(errors="replace").strip()
        if done.returncode or not found:
            raise ToolError(
                f"git knows no {asked!r} in {self.folder}: give a branch, a tag, HEAD~N, or more "
                "of the id. `git log --oneline` lists commits."
            )
        return found.splitlines()[-1]

    def _not_a_file(self, commit: str, path: str, kind: str) -> str:
        if kind != "tree":
            return f"{path} is a submodule in {commit[:12]}: ask in its own folder."
        listed = self._names(
            "ls-tree", "-z", "--name-only", "--full-tree", commit, "--", f"{path}/"
        )
        more = f" and {len(listed) - NEAR} more" if len(listed) > NEAR else ""
        return f"{path} is a folder in {commit[:12]}: {', '.join(listed[:NEAR])}{more}."

    def _no_such_path(self, commit: str, name: GitName) -> str:
        """With the nearest paths: those of the same name first."""
        paths = self._names("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
        last = name.path.rpartition("/")[2]
        near = [path for path in paths if path.rpartition("/")[2] == last][:NEAR]
        near = near or difflib.get_close_matches(name.path, paths[:20_000], n=NEAR, cutoff=0.6)
        hint = f" Nearest: {', '.join(near)}." if near else " Paths start at the repository's root."
        return f"There is no {name.path!r} in {name.revision} ({commit[:12]}).{hint}"

    def _names(self, *arguments: str) -> list[str]:
        listed = self._run(*arguments)[:MAX_LISTED_BYTES]
        return [os.fsdecode(name) for name in listed.split(b"\0") if name]

    def _name(self) -> str:
        done = self._try("config", "--get", "remote.origin.url")
        return shared_name(done.stdout.decode(errors="replace").strip()) or self.project

    def _run(self, *arguments: str) -> bytes:
        done = self._try(*arguments)
        if done.returncode:
            raise ToolError(f"git {arguments[0]} failed in {self.folder}: {_said(done)}")
        return done.stdout

    def _try(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        left = self._end - time.monotonic()
        try:
            if left <= 0:
                raise subprocess.TimeoutExpired("git", DEADLINE_S)
            return subprocess.run(
                ["git", *arguments],
                cwd=self.folder,
                env=quiet_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=left,
                check=False,
            )
        except FileNotFoundError as error:
            missing = "git" if os.path.isdir(self.folder) else self.folder  # noqa: PTH112
            raise ToolError(f"{missing} is not there, so nothing of git's can be read.") from error
        except subprocess.TimeoutExpired as error:
            raise ToolError(
                f"git took longer than {DEADLINE_S:g} s in {self.folder}: try again, or read the "
                "file with git show."
            ) from error
        except (OSError, ValueError) as error:
            raise ToolError(f"git cannot be run in {self.folder}: {error}.") from error


def _blamed(porcelain: str) -> Iterator[tuple[int, str]]:
    """Line numbers with their commits, from what `git blame --porcelain` prints: each line of the
    file begins with a tab, the header above it with the commit; all zeros is no commit yet."""
    for line in porcelain.split("\n"):
        header = _BLAME_HEADER.match(line)
        if header is not None and header["commit"].strip("0"):
            yield int(header["line"]), header["commit"]


def shared_name(url: str) -> str:
    """What a remote is called on every machine: `github.com/user/repo`; empty for one that is only
    a path, and so may be something else elsewhere."""
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


def quiet_environment() -> dict[str, str]:
    """The environment of a git that looks at the folder it runs in, asks nobody, and changes and
    fetches nothing."""
    ours = ((k, v) for k, v in os.environ.items() if k not in _OF_ANOTHER_REPOSITORY)
    return {**dict(ours), **_QUIET}


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else f"exit code {done.returncode}"

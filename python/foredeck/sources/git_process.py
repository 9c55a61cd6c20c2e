# Paths are strings here: not always UTF-8.
# ruff: noqa: PTH100, PTH112
"""The only caller of git, with a configuration of foredeck's own, so that none of the repository's
programs run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from threading import Timer
from typing import IO, NamedTuple

from foredeck.errors import ForedeckError
from foredeck.regular_files import read_regular
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.projects import find_git

MOST_BYTES = 64 * 1024 * 1024
"""Of one git's output; more ends it."""

_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    # Git would refresh the index, and a git of the user's find that locked.
    "GIT_OPTIONAL_LOCKS": "0",
    # A partial clone would fetch a missing object from its remote.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    # A file may be called `*` or `:(top)`.
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}
# The others are not kept: where git itself has started us, as in a hook, they name its repository.
_USERS = ("GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
"""Git's own variables that are kept."""
_NO_USER = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

_OURS = {
    "core.bare": "false",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.quotePath": "false",
}
_TRUTH = "true|false|yes|no|on|off|0|1"
_COPIED = {
    "core.autocrlf": f"input|{_TRUTH}",
    "core.eol": "lf|crlf|native",
    "core.filemode": _TRUTH,
    "core.ignorecase": _TRUTH,
    "core.precomposeunicode": _TRUTH,
    "core.symlinks": _TRUTH,
    "core.repositoryformatversion": "[01]",
    "extensions.objectformat": "sha1|sha256",
    "extensions.refstorage": "files|reftable",
}
"""Keys taken from the repository's and the user's configuration."""

_SHARED = ("objects", "refs", "packed-refs", "reftable", "shallow", "logs", "info/exclude")
_OWN = ("index", "MERGE_HEAD", "ORIG_HEAD", "FETCH_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD")
_SMALL = 64 * 1024
CONFIGURATION_S = 5.0
"""Seconds for git to list a configuration."""


class GitUnusable(ForedeckError):
    """Git is not run in a folder; the text says why."""


class NoRepository(GitUnusable):
    """A folder is in no git repository."""


class GitTimeout(GitUnusable):
    """Git has taken too long."""


class GitAnswer(NamedTuple):
    """Git's output, exit status, and first line of errors."""

    code: int
    out: bytes
    said: str


@dataclass(frozen=True, slots=True)
class RunningGit:
    """A started git; call `end` or `kill`."""

    folder: str
    _process: subprocess.Popen[bytes]
    _errors: IO[bytes]

    def end(self, until: float, most: int = MOST_BYTES) -> GitAnswer:
        """Its output until it ends or exceeds `most` bytes. Raises `GitTimeout` at `until`
        (`time.monotonic`)."""
        out = self._process.stdout
        assert out is not None
        # A read of a pipe has no timeout: killing git ends it.
        timer = Timer(max(0.0, until - time.monotonic()), self._stop)
        timer.start()
        try:
            data = out.read(most + 1)
            if len(data) > most:
                self._stop()
            code = self._process.wait()
            self._errors.seek(0)
            message = self._errors.read(_SMALL).decode(errors="replace").strip().partition("\n")[0]
        finally:
            timer.cancel()
            self._close()
        if code < 0 and len(data) <= most and time.monotonic() >= until:
            raise GitTimeout(f"git takes too long in {self.folder}.")
        return GitAnswer(code, data[:most], message.removeprefix("fatal: ") or f"exit code {code}")

    def kill(self) -> None:
        self._stop()
        self._process.wait()
        self._close()

    def _stop(self) -> None:
        with suppress(OSError):
            # With whatever it may have started, which would keep the pipe open.
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def _close(self) -> None:
        self._errors.close()
        if self._process.stdout is not None:
            self._process.stdout.close()


@dataclass(frozen=True, slots=True)
class Git:
    """Git in one repository. `folder`, where it runs, and `top` are local paths.

    `origin`: that remote's address, or "".
    """

    folder: str
    top: str
    origin: str
    _git_dir: str

    def start(self, *arguments: str, until: float, given: bytes = b"") -> RunningGit:
        """Starts a git that reads `given`. Raises `GitUnusable`, or `GitTimeout` after `until`."""
        # A quick git would beat the timer in `end`: without this, chance would decide.
        if time.monotonic() >= until:
            raise GitTimeout(f"There is no time left for git in {self.folder}.")
        # With both, git looks for no repository itself, so that it never takes a folder of a clone
        # for one. Before 2.32 it knows nothing of GIT_CONFIG_GLOBAL, and looks below HOME.
        homes = dict.fromkeys(("HOME", "XDG_CONFIG_HOME"), self._git_dir)
        place = {"GIT_DIR": self._git_dir, "GIT_WORK_TREE": self.top, **_NO_USER, **homes}
        if arguments[0] == "check-ignore":  # takes paths, and refuses to have this said
            place["GIT_LITERAL_PATHSPECS"] = "0"
        return _start(self.folder, arguments, place, given)

    def run(
        self, *arguments: str, until: float, given: bytes = b"", most: int = MOST_BYTES
    ) -> GitAnswer:
        """As `start` and `end`."""
        return self.start(*arguments, until=until, given=given).end(until, most)


@contextmanager
def opened_git(folder: str) -> Iterator[Git]:
    """Git for a folder's repository. Raises `GitUnusable`."""
    location = find_git(os.path.abspath(folder), FilesystemMap("", cwd=folder))
    if location is None:
        raise NoRepository(f"{folder} is in no git repository.")
    if location.own is None or location.common is None:
        raise GitUnusable(f"{location.top}/.git leads to a repository that is not this folder's.")
    own, common = Path(location.own), Path(location.common)
    with tempfile.TemporaryDirectory(prefix="foredeck-git-") as name:
        place = Path(name)
        try:
            settings = _repositorys_configuration(read_regular(common / "config"))
            _furnish(place, own, common, {**_users_configuration(), **settings})
        except (OSError, ValueError) as error:
            raise GitUnusable(f"git cannot read the repository of {folder}: {error}") from error
        yield Git(folder, location.top, settings.get("remote.origin.url", ""), name)


def _furnish(place: Path, own: Path, common: Path, said: Mapping[str, str]) -> None:
    # A repository can name programs for git to run in dozens of places, and new versions of git
    # bring more. So only what is known to be data is linked, and a few values are copied: no hook,
    # filter, monitor, pager or remote is in here, even where the repository changes meanwhile.
    (place / "HEAD").write_bytes(read_regular(own / "HEAD", _SMALL))
    (place / "info").mkdir()
    parts = [path.name for path in own.glob("sharedindex.*")]
    for folder, names in ((common, _SHARED), (own, (*_OWN, *parts))):
        # Not `Path.resolve`, which raises for a link that leads into a loop.
        real_folder = Path(os.path.realpath(folder))
        for name in names:
            # A link out of the repository would show another one's commits as this one's.
            target = Path(os.path.realpath(real_folder / name))
            if not target.is_relative_to(real_folder):
                raise ValueError(f"its {name} is elsewhere")
            if target.is_file() or target.is_dir():
                (place / name).symlink_to(target)
    if _has_objects_elsewhere(common / "objects"):
        raise ValueError("some of its objects are elsewhere")
    ours = {**_OURS, "core.excludesFile": _users_configuration()["core.excludesfile"]}
    for key, allowed in _COPIED.items():
        if re.fullmatch(allowed, value := said.get(key, ""), re.IGNORECASE):
            ours[key] = value
    lines = []
    for key, value in ours.items():
        section, _, name = key.partition(".")
        text = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'[{section}]\n\t{name} = "{text}"\n')
    (place / "config").write_bytes(os.fsencode("".join(lines)))


def _has_objects_elsewhere(objects: Path) -> bool:
    with os.scandir(objects) as entries:
        return any(each.is_symlink() for each in entries) or (objects / "info/alternates").exists()


# By its bytes: it is asked for before each command, and seldom changes.
@lru_cache(maxsize=16)
def _repositorys_configuration(text: bytes) -> Mapping[str, str]:
    with tempfile.NamedTemporaryFile(prefix="foredeck-git-") as file:
        file.write(text)
        file.flush()
        return _listed("--file", file.name)


@cache
def _users_configuration() -> Mapping[str, str]:
    """The user's configuration of all repositories, with the global ignore file."""
    try:
        values = _listed("--includes")
    except (GitUnusable, ValueError):
        values = {}
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config")
    ignored = Path(values.get("core.excludesfile") or settings / "git" / "ignore")
    return {**values, "core.excludesfile": str(ignored.expanduser())}


def _listed(*options: str) -> dict[str, str]:
    # Else git would add the configuration of the repository that the folder for drafts lies in.
    nowhere = {"GIT_DIR": os.devnull}
    running = _start(tempfile.gettempdir(), ("config", "-z", "--list", *options), nowhere, b"")
    answer = running.end(time.monotonic() + CONFIGURATION_S)
    if answer.code:
        raise ValueError(answer.said)
    entries = (entry.partition("\n") for entry in os.fsdecode(answer.out).split("\0"))
    return {key: value if sign else "true" for key, sign, value in entries if key}


def _start(
    folder: str, arguments: Sequence[str], place: Mapping[str, str], given: bytes
) -> RunningGit:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k in _USERS}
    # Files and no pipes: writing to one pipe while git fills another could block both.
    errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the process)
    with tempfile.TemporaryFile() as source:
        source.write(given)
        source.seek(0)
        try:
            process = subprocess.Popen(
                ["git", *arguments],
                cwd=folder,
                env={**environment, **_ENVIRONMENT, **place},
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # so that all that git starts is killed with it
            )
        except (OSError, ValueError) as error:
            errors.close()
            text = f"git cannot be run in {folder}: {error}."
            if isinstance(error, FileNotFoundError):
                missing = "git" if os.path.isdir(folder) else folder
                text = f"{missing} is not there, so nothing of git's can be read."
            raise GitUnusable(text) from error
    return RunningGit(folder, process, errors)

"""What a memory entry rests on: files and commits, and whether they have changed."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from hashlib import file_digest
from pathlib import Path

from foredeck.errors import ToolError
from foredeck.memory.entry import MemoryRefused
from foredeck.model.memory import Ground
from foredeck.regular_files import open_to_read
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.git import Repository, repository
from foredeck.sources.projects import find_git
from foredeck.store.store import Store

_COMMIT = "git:"
_State = tuple[int, int, int]


class GroundReader:
    """Checks entries' grounds from one folder."""

    # What was found of a file is kept until that changes, so that this can be asked at every call.

    def __init__(self, store: Store, filesystems: FilesystemMap) -> None:
        self._store = store
        self._filesystems = filesystems
        self._files: dict[str, tuple[_State, str]] = {}
        self._commits: dict[tuple[str, str], tuple[_State | None, bool]] = {}

    def take(self, names: Iterable[str]) -> list[Ground]:
        """Grounds by name: paths, or `git:COMMIT` of this repository. Raises `MemoryRefused`."""
        return [self._commit(n) if n.startswith(_COMMIT) else self._file(n) for n in names]

    def again(self, grounds: Iterable[Ground]) -> list[Ground]:
        """The same grounds now, without missing ones."""
        current = []
        for ground in grounds:
            version = self._version(ground.path) if ground.kind == "file" else None
            if ground.kind == "commit" and self._has_commit(ground):
                current.append(ground)
            elif version is not None:
                current.append(ground.model_copy(update={"version": version}))
        return current

    def moved(self, grounds: Iterable[Ground]) -> list[Ground]:
        """Grounds that changed."""
        return [ground for ground in grounds if not self._holds(ground)]

    def _holds(self, ground: Ground) -> bool:
        if ground.kind == "file":
            return self._version(ground.path) == ground.version
        return self._has_commit(ground)

    def _file(self, name: str) -> Ground:
        path = self._filesystems.absolute(name)
        version = self._version(path)
        if version is None:
            raise MemoryRefused(f"{path} is no file that can be read, so nothing can rest on it.")
        return Ground(path=path, version=version)

    def _version(self, path: str) -> str | None:
        """SHA-256 of a file; None without it."""
        # What cannot be reached from here, such as a file in a container, is as the store knows it.
        location = self._filesystems.locate(path)
        if location.local is None:
            head = self._store.head(location.object_id)
            return None if head is None else head.fields.get("source_hash")
        try:
            state = _state_of(location.local)
            cached = self._files.get(location.local)
            if cached is None or cached[0] != state:
                with open_to_read(location.local) as file:
                    cached = state, file_digest(file, "sha256").hexdigest()
                self._files[location.local] = cached
        except OSError:
            return None
        return cached[1]

    def _commit(self, name: str) -> Ground:
        folder = self._filesystems.cwd
        try:
            with self._repository(folder) as opened:
                commit = opened.commit(name.removeprefix(_COMMIT))
        except ToolError as error:
            raise MemoryRefused(str(error)) from error
        return Ground(kind="commit", path=folder, version=commit)

    def _has_commit(self, ground: Ground) -> bool:
        # Git is asked again once it has noted that something else is checked out: it is a process.
        here = self._filesystems.locate(ground.path).local
        if here is None:
            return True  # nobody here can tell
        key, state = (ground.path, ground.version), _last_move(here)
        cached = self._commits.get(key)
        if cached is None or state is None or cached[0] != state:
            try:
                with self._repository(ground.path) as opened:
                    cached = state, opened.contains(ground.version)
            except ToolError:
                cached = state, False
            self._commits[key] = cached
        return cached[1]

    def _repository(self, folder: str) -> AbstractContextManager[Repository]:
        local = self._filesystems.locate(folder).local
        if local is None:
            raise ToolError(f"{folder} cannot be reached from here.")
        return repository(local)


def names_of(grounds: Iterable[Ground]) -> list[str]:
    """What people call grounds."""
    return [g.path if g.kind == "file" else f"git:{g.version[:12]}" for g in grounds]


def _state_of(path: str) -> _State:
    status = Path(path).stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _last_move(folder: str) -> _State | None:
    """When git last noted a checkout, if known."""
    git_folder = find_git(folder, FilesystemMap("", cwd=folder))
    try:
        own = None if git_folder is None else git_folder.own
        return None if own is None else _state_of(str(Path(own, "logs", "HEAD")))
    except OSError:
        return None

# Paths are strings here: lexical, not always UTF-8, thousands at a time.
# ruff: noqa: PTH100, PTH114, PTH116, PTH117, PTH118, PTH120
"""From a path to the file that it names: filesystem id, identity path, and where to open it.

**Identity path.** A path is made absolute lexically, then its symbolic links are resolved, the last
component's included: two paths that reach one file are one object with one history. What cannot be
resolved is kept as it is written. Hard links are different paths and so different objects; so are
two spellings on a file system that ignores case.

**Mounts.** The longest mount prefix that matches on whole components decides. With a
`host_path` the file is opened there, and its identity is that of the machine it lies on.

**Shared file systems.** A mount with a `filesystem_id` names a volume that several machines or
containers have, perhaps at different places. Files in it are identified by that name and by the
path under the mount's `prefix`, the same for all.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from foredeck.config import Config
from foredeck.model.documents import identity_hash
from foredeck.model.sources import FilesystemSource
from foredeck.sources.machine import default_filesystem_id


class Mount(NamedTuple):
    """A range of paths that lies on another file system than the rest.

    `prefix`: absolute folder as the agent names it. `host_path`: the same folder as this process
    names it, None if the names are the same. `filesystem_id`: None for this machine's own; with
    one, `prefix` is also what the folder is called in the identities of its files.
    """

    prefix: str
    host_path: str | None = None
    filesystem_id: str | None = None


@dataclass(frozen=True, slots=True)
class Location:
    """Where a file is: its identity, and the path to open here (None: out of this side's reach).

    `object_id`, the id of the file's object, follows from the identity where it is not given.
    """

    filesystem_id: str
    path: str
    local: str | None
    object_id: str = ""

    def __post_init__(self) -> None:
        if not self.object_id:
            source = {"type": "filesystem", "filesystemId": self.filesystem_id, "path": self.path}
            object.__setattr__(self, "object_id", identity_hash("file", source))

    @property
    def source(self) -> FilesystemSource:
        """The source binding of the file's object."""
        return FilesystemSource(filesystemId=self.filesystem_id, path=self.path)


class FilesystemMap:
    """Which file system a path belongs to, as the agent sees paths.

    `default_id` covers all paths outside `mounts`. `cwd` is where relative paths start unless a
    call says otherwise. `host_id` is the machine that `host_path`s lie on (the default's, unless
    the agent works in a container). `sandboxed` says that paths outside the mounts belong to a
    container that this process cannot see.

    With `device_fallback`, a path outside all mounts whose folder lies on another device than
    the root folder gets an id of its own, derived from the default id and the device number.
    """

    def __init__(
        self,
        default_id: str,
        mounts: Sequence[Mount] = (),
        device_fallback: bool = False,
        cwd: str | None = None,
        *,
        host_id: str | None = None,
        sandboxed: bool = False,
    ) -> None:
        self.default_id = default_id
        self.host_id = host_id or default_id
        self.sandboxed = sandboxed
        self.cwd = os.path.abspath(cwd or os.curdir)
        self._ranges = sorted(map(self._range, mounts), key=lambda r: -len(r.prefix))
        self._rest = _Range("/", "/", default_id, False, not sandboxed)
        self._device_fallback = device_fallback and not sandboxed
        self._device_ids: dict[int, str] = {}
        self._real_folders: dict[str, str] = {}

    def locate(self, path: str, cwd: str | None = None, *, follow: bool = True) -> Location:
        """The file that the agent means by `path`, relative to `cwd`.

        Without `follow` the disk is not touched and links stay as they are written.
        """
        absolute = self.absolute(path, self._agent_cwd(cwd or self.cwd))
        found = next((r for r in self._ranges if is_within(absolute, r.prefix)), self._rest)
        named = found.local(absolute) if found.translated else absolute
        if not found.reachable or not _can_exist(named):
            return Location(found.filesystem_id, found.identity(named), None)
        if not follow:
            here = self._range_here(named) if found is self._rest else found
            return Location(here.filesystem_id, here.identity(named), named)
        return self._resolve(named, found)

    def locate_local(self, path: str, *, follow: bool = True) -> Location:
        """The file at a path of this machine, as a watcher reports it."""
        named = self.absolute(path)
        found = self._range_here(named)
        if not found.reachable or not _can_exist(named):
            return Location(self.host_id, named, None)
        if not follow:
            return Location(self._id_here(named, found), found.identity(named), named)
        return self._resolve(named, found)

    def local_path(self, source: FilesystemSource) -> str | None:
        """Where this process finds a known file now; None when its file system is not here."""
        return self.local_at(source.filesystemId, source.path)

    def local_at(self, filesystem_id: str, path: str) -> str | None:
        """As `local_path`, from the two parts of the source binding."""
        shared = (
            r
            for r in self._ranges
            if r.shared and r.filesystem_id == filesystem_id and is_within(path, r.prefix)
        )
        volume = next(shared, None)
        local = path if volume is None else volume.local(path)
        found = self._range_here(local)
        if not found.reachable or not _can_exist(local):
            return None
        known_as = self._id_here(local, found), found.identity(local)
        return local if known_as == (filesystem_id, path) else None

    @property
    def ids(self) -> set[str]:
        """Of all file systems that a path can be on, without those told apart by device."""
        return {self.default_id, self.host_id, *(each.filesystem_id for each in self._ranges)}

    def root_at(self, local: str) -> str | None:
        """The folder of this machine where the mount begins that a path is in; None for a path
        outside all mounts."""
        found = self._range_here(local)
        return None if found is self._rest else found.root

    def agent_path(self, filesystem_id: str, path: str) -> str:
        """What the agent calls a known file: the inverse of `locate`, links left as they are.

        Of a volume that this machine shares, that is the path here, unless the agent works in a
        container or in the volume under its `prefix`.
        """
        local = self.local_at(filesystem_id, path) if self._ranges else None
        if local is None:
            return path
        found = self._range_here(local)
        if found.shared and not self.sandboxed and not is_within(self.cwd, found.prefix):
            return local
        return found.agent_path(local) if found.translated else path

    def absolute(self, path: str, cwd: str | None = None) -> str:
        """The path made absolute and free of `.`, `..` and doubled separators, lexically."""
        base = cwd or self.cwd
        # Lexically, as the agent's own tools do it: `a/../b` is `b`, even where `a` is a link. The
        # agent of a container may use `/`, where this machine has other separators.
        flavour = posixpath if (path if os.path.isabs(path) else base).startswith("/") else os.path
        joined: str = flavour.normpath(flavour.join(base, path))
        # POSIX keeps exactly two leading slashes.
        return "/" + joined.lstrip("/") if joined.startswith("//") else joined

    def real(self, path: str) -> str:
        """`path` of this machine with its links resolved."""
        # Folders are resolved once until `forget` is called: thousands of files share few folders.
        folder, name = os.path.split(path)
        real_folder = self._real_folders.get(folder)
        if real_folder is None:
            real_folder = self._real_folders[folder] = os.path.realpath(folder)
        plain = os.path.join(real_folder, name) if name else real_folder
        return os.path.realpath(plain) if os.path.islink(plain) else plain

    def forget(self) -> None:
        """Drop what is remembered of links; to be called whenever a new look is taken."""
        self._real_folders.clear()

    def _agent_cwd(self, cwd: str) -> str:
        """The folder that the agent works in, as its container names it."""
        # The host may run on this side, and give its own name of a folder that the container has.
        if not self.sandboxed or any(is_within(cwd, r.prefix) for r in self._ranges):
            return cwd
        local = self.real(cwd)
        found = self._range_here(local)
        return found.agent_path(local) if found.translated else cwd

    def _range(self, mount: Mount) -> _Range:
        prefix = self.absolute(mount.prefix)
        root = os.path.realpath(mount.host_path or prefix)
        own_id = self.host_id if mount.host_path is not None else self.default_id
        return _Range(
            prefix,
            root,
            mount.filesystem_id or own_id,
            translated=mount.host_path is not None and mount.host_path != prefix,
            shared=mount.filesystem_id is not None,
            reachable=mount.host_path is not None or not self.sandboxed,
        )

    def _resolve(self, named: str, found: _Range) -> Location:
        real = self.real(named)
        if found.translated and not is_within(real, found.root):
            # The link's target names a place in the container that this process cannot see.
            return Location(found.filesystem_id, found.identity(named), None)
        here = self._range_here(real)
        if not is_within(real, found.root) or len(here.root) > len(found.root):
            found = here
        return Location(self._id_here(real, found), found.identity(real), real)

    def _range_here(self, local: str) -> _Range:
        matches = (r for r in self._ranges if is_within(local, r.root))
        return max(matches, key=lambda r: len(r.root), default=self._rest)

    def _id_here(self, local: str, found: _Range) -> str:
        if found is not self._rest or not self._device_fallback:
            return found.filesystem_id
        if not self._device_ids:
            self._device_ids[_folder_device(os.path.abspath(os.sep))] = self.default_id
        device = _folder_device(os.path.dirname(local))
        if device not in self._device_ids:
            name = f"{self.default_id}:{device}"
            self._device_ids[device] = hashlib.sha256(name.encode()).hexdigest()
        return self._device_ids[device]


def open_filesystems(config: Config, cwd: str) -> FilesystemMap:
    """The agent's file systems: this machine's or a container's, and the configured mounts."""
    machine = default_filesystem_id(Path(config.home))
    return FilesystemMap(
        config.sources.filesystem_id or machine,
        [
            Mount(
                mount.prefix,
                None if mount.host_path is None else str(mount.host_path),
                mount.filesystem_id,
            )
            for mount in config.sources.mounts
        ],
        device_fallback=config.sources.device_fallback,
        cwd=cwd,
        host_id=machine,
        sandboxed=config.sources.sandboxed,
    )


class _Range(NamedTuple):
    """A mount as it is used: `prefix` as the agent names it, `root` as this process does."""

    prefix: str
    root: str
    filesystem_id: str
    translated: bool
    reachable: bool
    shared: bool = False

    def local(self, path: str) -> str:
        """The path of this machine for one under `prefix`."""
        rest = path[len(self.prefix) :].strip(_SEPARATORS)
        return os.path.normpath(os.path.join(self.root, rest))

    def identity(self, local: str) -> str:
        """The identity path of a file at a path of this machine."""
        return self.agent_path(local) if self.shared and is_within(local, self.root) else local

    def agent_path(self, local: str) -> str:
        """The path under `prefix` for one of this machine under `root`."""
        rest = local[len(self.root) :].strip(_SEPARATORS)
        return posixpath.join(self.prefix, rest.replace(os.sep, "/")) if rest else self.prefix


_SEPARATORS = "/" if os.sep == "/" else "/\\"


def is_within(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies under it, on whole components."""
    bare = folder.rstrip(_SEPARATORS)
    if path == folder:
        return True
    return path.startswith(bare) and path[len(bare) : len(bare) + 1] in tuple(_SEPARATORS)


def _can_exist(path: str) -> bool:
    """Whether a file can have this name at all: no NUL, no surrogate that encodes no byte."""
    # Names that are not UTF-8 are held with a lone surrogate for each stray byte (PEP 383).
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def nearest_status(path: str) -> os.stat_result | None:
    """Of what is at a path, else of the nearest folder above it that can be seen."""
    while True:
        try:
            return os.stat(path)
        except (OSError, ValueError):
            if os.path.dirname(path) == path:
                return None
            path = os.path.dirname(path)


def _folder_device(folder: str) -> int:
    # A folder's, not a file's: layered file systems report other devices for files.
    status = nearest_status(folder)
    return 0 if status is None else status.st_dev

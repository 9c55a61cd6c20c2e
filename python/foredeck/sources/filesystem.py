# Paths are strings here: lexical, not always UTF-8, thousands at a time.
# ruff: noqa: PTH100, PTH114, PTH116, PTH117, PTH118, PTH120
"""From a path to the file that it names: filesystem id, identity path, and where to open it.

**Identity path.** A path is made absolute, then links are resolved: paths to one file are one
object. Hard links are different objects.

**Mounts.** The longest prefix wins. One with `host_path` is opened there; one with `filesystem_id`
is a volume of several machines.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from foredeck.config import Config
from foredeck.model.documents import identity_hash
from foredeck.model.sources import FilesystemSource
from foredeck.regular_files import read_text


class Mount(NamedTuple):
    """Paths on another file system.

    `prefix`: the folder as the agent names it. `host_path`: as this process does.
    """

    prefix: str
    host_path: str | None = None
    filesystem_id: str | None = None


@dataclass(frozen=True, slots=True)
class Location:
    """A file's identity, and the path to open here, if any."""

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
        return FilesystemSource(filesystemId=self.filesystem_id, path=self.path)


class FilesystemMap:
    """Maps the agent's paths to file systems.

    `default_id` covers paths outside `mounts`; `sandboxed`: these belong to a container invisible
    here.
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
        """The file that the agent means by `path`; without `follow` the disk is not touched."""
        folder = cwd or self.cwd
        if self.sandboxed and not any(is_within(folder, r.prefix) for r in self._ranges):
            # The host may run on this side, and give its own name of a folder in the container.
            real = self.real(folder)
            place = self._range_here(real)
            folder = place.agent_path(real) if place.translated else folder
        absolute = self.absolute(path, folder)
        range_ = next((r for r in self._ranges if is_within(absolute, r.prefix)), self._rest)
        local = range_.local(absolute) if range_.translated else absolute
        if not range_.reachable or not _can_exist(local):
            return Location(range_.filesystem_id, range_.identity(local), None)
        if not follow:
            here = self._range_here(local) if range_ is self._rest else range_
            return Location(here.filesystem_id, here.identity(local), local)
        return self._resolve(local, range_)

    def locate_local(self, path: str, *, follow: bool = True) -> Location:
        """The file at a path of this machine."""
        local = self.absolute(path)
        range_ = self._range_here(local)
        if not range_.reachable or not _can_exist(local):
            return Location(self.host_id, local, None)
        if not follow:
            return Location(self._id_here(local, range_), range_.identity(local), local)
        return self._resolve(local, range_)

    def local_path(self, source: FilesystemSource) -> str | None:
        """Where this process finds a known file now, if anywhere."""
        return self.local_at(source.filesystemId, source.path)

    def local_at(self, filesystem_id: str, path: str) -> str | None:
        shared = (
            r
            for r in self._ranges
            if r.shared and r.filesystem_id == filesystem_id and is_within(path, r.prefix)
        )
        volume = next(shared, None)
        local = path if volume is None else volume.local(path)
        range_ = self._range_here(local)
        if not range_.reachable or not _can_exist(local):
            return None
        known_as = self._id_here(local, range_), range_.identity(local)
        return local if known_as == (filesystem_id, path) else None

    @property
    def ids(self) -> set[str]:
        """Ids of all file systems, except those told apart by device."""
        return {self.default_id, self.host_id, *(each.filesystem_id for each in self._ranges)}

    def root_at(self, local: str) -> str | None:
        range_ = self._range_here(local)
        return None if range_ is self._rest else range_.root

    def agent_path(self, filesystem_id: str, path: str) -> str:
        """The agent's path of a known file; on a shared volume the local one, unless the agent is
        in a container."""
        local = self.local_at(filesystem_id, path) if self._ranges else None
        if local is None:
            return path
        range_ = self._range_here(local)
        if range_.shared and not self.sandboxed and not is_within(self.cwd, range_.prefix):
            return local
        return range_.agent_path(local) if range_.translated else path

    def absolute(self, path: str, cwd: str | None = None) -> str:
        """The path made absolute and normalised lexically."""
        base = cwd or self.cwd
        # Lexically, as the agent's own tools do it: `a/../b` is `b`, even where `a` is a link. The
        # agent of a container may use `/`, where this machine has other separators.
        flavour = posixpath if (path if os.path.isabs(path) else base).startswith("/") else os.path
        joined: str = flavour.normpath(flavour.join(base, path))
        # POSIX keeps exactly two leading slashes.
        return "/" + joined.lstrip("/") if joined.startswith("//") else joined

    def real(self, path: str) -> str:
        """A local path with links resolved."""
        # Folders are resolved once until `forget` is called: thousands of files share few folders.
        folder, name = os.path.split(path)
        real_folder = self._real_folders.get(folder)
        if real_folder is None:
            real_folder = self._real_folders[folder] = os.path.realpath(folder)
        plain = os.path.join(real_folder, name) if name else real_folder
        return os.path.realpath(plain) if os.path.islink(plain) else plain

    def forget(self) -> None:
        """Forgets remembered links, before a new look."""
        self._real_folders.clear()

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
    """The agent's file systems: this machine's or a container's, with configured mounts."""
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
    """A mount: `prefix` is the agent's name, `root` this process's."""

    prefix: str
    root: str
    filesystem_id: str
    translated: bool
    reachable: bool
    shared: bool = False

    def local(self, path: str) -> str:
        """The local path for one under `prefix`."""
        rest = path[len(self.prefix) :].strip(_SEPARATORS)
        return os.path.normpath(os.path.join(self.root, rest))

    def identity(self, local: str) -> str:
        """The identity path of a local file."""
        return self.agent_path(local) if self.shared and is_within(local, self.root) else local

    def agent_path(self, local: str) -> str:
        rest = local[len(self.root) :].strip(_SEPARATORS)
        return posixpath.join(self.prefix, rest.replace(os.sep, "/")) if rest else self.prefix


_SEPARATORS = "/" if os.sep == "/" else "/\\"


def is_within(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or below it."""
    bare = folder.rstrip(_SEPARATORS)
    if path == folder:
        return True
    return path.startswith(bare) and path[len(bare) : len(bare) + 1] in tuple(_SEPARATORS)


def _can_exist(path: str) -> bool:
    """Whether a file can have this name: no NUL, no undecodable surrogate."""
    # Names that are not UTF-8 are held with a lone surrogate for each stray byte (PEP 383).
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def nearest_status(path: str) -> os.stat_result | None:
    """Status of a path, or of the nearest visible folder above it."""
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


# The default id: of this machine, or of the container around this process. Equal ids must mean a
# shared file system.


MACHINE_ID_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")
FALLBACK_NAME = "filesystem-id"

_HEX_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_BOUND_FILES = ("/etc/hostname", "/etc/hosts", "/etc/resolv.conf")
_PLATFORM_UUID = re.compile(r'"IOPlatformUUID"\s*=\s*"([^"]+)"')


def default_filesystem_id(state_folder: Path) -> str:
    """The id of this process's file system, from the container's or machine's id, else random.
    Raises `OSError`."""
    # Containers made from one image share its machine id, so their own id goes first.
    name = container_id() or machine_id() or _kept_id(state_folder)
    return hashlib.sha256(name.encode()).hexdigest()


def machine_id() -> str | None:
    """The operating system's machine id, if any."""
    if sys.platform == "darwin":
        return _mac_platform_uuid()
    if sys.platform == "win32":
        return _windows_machine_guid()
    for name in MACHINE_ID_FILES:
        text = text_or_nothing(name).strip()
        if text and text != "uninitialized":
            return text
    return None


def container_id() -> str | None:
    """The id of the container around this process, if it shows."""
    if sys.platform in ("darwin", "win32"):
        return None
    names = ("/proc/self/cgroup", "/proc/self/mountinfo", "/run/.containerenv")
    return find_container_id(*map(text_or_nothing, names))


def find_container_id(cgroup: str, mountinfo: str, containerenv: str = "") -> str | None:
    """The 64 digits in `/proc/self/cgroup`, `mountinfo` or `/run/.containerenv`."""
    for line in cgroup.splitlines():
        match = _HEX_ID.search(line.rpartition(":")[2])
        if match:
            return match[0]
    match = _HEX_ID.search(containerenv)
    if match:
        return match[0]
    # Only the files that a runtime binds into every container count: a machine that runs containers
    # has their ids in its other mounts.
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if len(fields) > 4 and fields[4] in _BOUND_FILES:
            match = _HEX_ID.search(fields[3])
            if match:
                return match[0]
    return None


def _kept_id(state_folder: Path) -> str:
    path = state_folder / FALLBACK_NAME
    try:
        return read_text(path).strip() or _make_id(path)
    except FileNotFoundError:
        return _make_id(path)


def _make_id(path: Path) -> str:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Two engines may start at once: the one that comes second reads what the first has made. A
    # crash between making the file and writing it leaves an empty one.
    try:
        with path.open("x") as file:
            file.write(secrets.token_hex(32) + "\n")
    except FileExistsError:
        if not read_text(path).strip():
            path.write_text(secrets.token_hex(32) + "\n")
    return read_text(path).strip()


def text_or_nothing(name: str) -> str:
    """A file's text; empty if unreadable."""
    try:
        return read_text(name, errors="replace")
    except OSError:
        return ""


@cache
def _mac_platform_uuid() -> str | None:
    # Asked once: it takes a program, and a process stays on its machine.
    import subprocess

    try:
        result = subprocess.run(
            ["/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = _PLATFORM_UUID.search(result.stdout)
    return match[1] if match else None


def _windows_machine_guid() -> str | None:
    if sys.platform != "win32":
        return None
    # There is none on other systems.
    import winreg

    try:
        with winreg.OpenKey(
            winreg.HKEY_LOCAL_MACHINE,
            r"SOFTWARE\Microsoft\Cryptography",
            0,
            winreg.KEY_READ | winreg.KEY_WOW64_64KEY,
        ) as key:
            value = winreg.QueryValueEx(key, "MachineGuid")[0]
    except OSError:
        return None
    return str(value)

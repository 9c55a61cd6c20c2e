"""Identifies this machine or container: equal filesystem ids must mean a shared file system."""

from __future__ import annotations

import hashlib
import re
import secrets
import sys
from functools import cache
from pathlib import Path

from foredeck.regular_files import read_text

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

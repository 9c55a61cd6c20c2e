"""Builds wheel, sdist and npm tarball from a commit, with nothing of the machine."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name


class BuildFailed(Exception):
    """A build tool has failed; its words follow."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with its time, which all files of a package have."""

    hash: str
    seconds: int


def head_of(root: Path) -> Commit:
    text = run(["git", "log", "-1", "--format=%H %ct"], root, {}).decode()
    hash, seconds = text.split()
    return Commit(hash, int(seconds))


def extract(tar: tarfile.TarFile, folder: Path | str) -> None:
    """Extracts an archive with the filter for data, which Python 3.11.2 does not have."""
    tar.extraction_filter = getattr(tarfile, "data_filter", None)
    tar.extractall(folder)


def export(root: Path, commit: Commit, target: Path) -> None:
    packed = run(["git", "archive", "--format=tar", commit.hash], root, {})
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        extract(tar, target)


def build(tree: Path, commit: Commit, out: Path) -> list[Path]:
    """Wheel, sdist and npm tarball of an exported tree, without network. Raises `BuildFailed`."""
    out.mkdir(parents=True, exist_ok=True)
    variables = {"SOURCE_DATE_EPOCH": str(commit.seconds), "PYTHONHASHSEED": "0"}
    run([sys.executable, "-m", "hatchling", "build", "-d", str(out)], tree, variables)
    pack = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(out)]
    run(pack, tree, variables)
    return sorted(path for path in out.iterdir() if path.suffix in (".whl", ".gz", ".tgz"))


def hashes(files: list[Path]) -> dict[str, str]:
    """SHA-256 by name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def build_elsewhere(root: Path, commit: Commit) -> dict[str, str]:
    """Hashes of a second build in other surroundings."""
    other = {"TZ": "Pacific/Apia", "LC_ALL": "C"}
    before, umask = {name: os.environ.get(name) for name in other}, os.umask(0o077)
    os.environ.update(other)
    try:
        with tempfile.TemporaryDirectory(prefix="another-folder-") as name:
            tree = Path(name) / "deeper" / "tree"
            tree.mkdir(parents=True)
            export(root, commit, tree)
            return hashes(build(tree, commit, Path(name) / "out"))
    finally:
        os.umask(umask)
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def run(words: list[str], folder: Path, variables: dict[str, str]) -> bytes:
    """What a program prints. Raises `BuildFailed`."""
    result = subprocess.run(
        words, cwd=folder, env={**os.environ, **variables}, capture_output=True, check=False
    )
    if result.returncode:
        raise BuildFailed(f"{' '.join(words)}:\n{result.stdout.decode()}{result.stderr.decode()}")
    return result.stdout


class VersionsDiffer(Exception):
    """The files do not name one version."""


def versions(root: Path) -> dict[str, str]:
    """The version by file."""
    package = json.loads((root / "package.json").read_text())
    lock = json.loads((root / "package-lock.json").read_text())
    module = (root / "python/foredeck/version.py").read_text()
    match = re.search(r'^__version__ = "(.+)"$', module, re.MULTILINE)
    return {
        "pyproject.toml": tomllib.loads((root / "pyproject.toml").read_text())["project"][
            "version"
        ],
        "python/foredeck/version.py": match[1] if match else "",
        "package.json": package["version"],
        "package-lock.json": lock["packages"][""]["version"],
    }


def the_version(root: Path) -> str:
    """The one version. Raises `VersionsDiffer`."""
    by_file = versions(root)
    if len(set(by_file.values())) != 1:
        raise VersionsDiffer(", ".join(f"{file} says {value}" for file, value in by_file.items()))
    return by_file["pyproject.toml"]


LOCK = "requirements.lock"
HEAD = (
    "# What the engine needs, with all hashes, for every system and Python from 3.11 on.\n"
    "# Made from pyproject.toml by `scripts/release --lock`.\n"
)
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""The versions of Python whose wheels a bundle has."""


def write_lock(root: Path) -> None:
    """Make the lock file anew. Raises `BuildFailed`."""
    flags = ["--universal", "--python-version", PYTHONS[0], "--generate-hashes", "--upgrade"]
    silent = ["--no-emit-index-url", "--no-annotate", "--no-header", "--quiet"]
    uv = Path(sys.executable).with_name("uv")
    locked = run([str(uv), "pip", "compile", *flags, *silent, "pyproject.toml"], root, {})
    (root / LOCK).write_text(HEAD + locked.decode())


def bundle(out: Path, platforms: list[str]) -> Path:
    """Adds the lock file's wheels to the npm package; returns the tarball. Raises `BuildFailed`."""
    (packed,) = (path for path in out.glob("pi-foredeck-*.tgz") if "offline" not in path.name)
    with tempfile.TemporaryDirectory() as name:
        with tarfile.open(packed) as tar:
            extract(tar, name)
        package = Path(name) / "package"
        _collect(package, package / "wheels", platforms)
        target = packed.with_name(f"{packed.stem}-offline.tgz")
        with tarfile.open(target, "w:gz") as tar:
            tar.add(package, "package")
    return target


def _collect(package: Path, wheels: Path, platforms: list[str]) -> None:
    """Fetches wheels; those that are not published are built and locked."""
    lock = package / LOCK
    entries = re.split(r"^(?=[\w-]+==)", lock.read_text(), flags=re.MULTILINE)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run([*pip, "wheel", "--no-deps", "-r", LOCK, "-w", str(wheels)], package, {})
    built: dict[str, str] = {}
    for wheel in wheels.iterdir():
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if digest not in lock.read_text():
            built[canonicalize_name(wheel.name.split("-")[0])] = digest
            if not wheel.name.endswith("-none-any.whl"):
                raise BuildFailed(f"published without a wheel: {wheel.name}")
        elif platforms:
            wheel.unlink()
    published = package / "published.lock"
    published.write_text("".join(e for e in entries if e.split("==")[0] not in built))
    flags = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-d", str(wheels)]
    for python in PYTHONS:
        for platform in platforms or [""]:
            where = ["--platform", platform] if platform else []
            fetch = [*pip, "download", *flags, "-r", str(published), "--python-version", python]
            run([*fetch, *where], package, {})
    published.unlink()
    with_built = [
        f"{entry.rstrip()} \\\n    --hash=sha256:{digest}\n" if digest else entry
        for entry in entries
        for digest in [built.get(entry.split("==")[0])]
    ]
    lock.write_text("".join(with_built))

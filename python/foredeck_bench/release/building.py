"""Builds wheel, sdist and npm tarball from a commit, with nothing of the machine in them."""

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


class BuildFailed(Exception):
    """A tool that builds has failed; its own words follow."""


@dataclass(frozen=True, slots=True)
class Commit:
    """What is built: a commit by its hash, and the second since 1970 at which it was made.

    All files of a package have that time, on every machine.
    """

    hash: str
    seconds: int


def head_of(root: Path) -> Commit:
    """The commit that is checked out. Raises `BuildFailed`."""
    text = run(["git", "log", "-1", "--format=%H %ct"], root, {}).decode()
    hash, seconds = text.split()
    return Commit(hash, int(seconds))


def export(root: Path, commit: Commit, target: Path) -> None:
    """The files of the commit alone: what else lies about in the checkout is not released."""
    packed = run(["git", "archive", "--format=tar", commit.hash], root, {})
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        tar.extractall(target, filter="data")


def build(tree: Path, commit: Commit, out: Path) -> list[Path]:
    """Wheel, sdist and npm tarball of an exported tree, in `out`. Needs no network.

    Raises `BuildFailed`.
    """
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
    """The hashes of a second build, which has another folder, time zone, language and umask."""
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
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, **variables}, capture_output=True, check=False
    )
    if done.returncode:
        raise BuildFailed(f"{' '.join(words)}:\n{done.stdout.decode()}{done.stderr.decode()}")
    return done.stdout


class VersionsDiffer(Exception):
    """The files do not name one version."""


def versions(root: Path) -> dict[str, str]:
    """The version by file."""
    package = json.loads((root / "package.json").read_text())
    lock = json.loads((root / "package-lock.json").read_text())
    module = (root / "python/foredeck/__init__.py").read_text()
    found = re.search(r'^__version__ = "(.+)"$', module, re.MULTILINE)
    return {
        "pyproject.toml": tomllib.loads((root / "pyproject.toml").read_text())["project"][
            "version"
        ],
        "python/foredeck/__init__.py": found[1] if found else "",
        "package.json": package["version"],
        "package-lock.json": lock["packages"][""]["version"],
    }


def the_version(root: Path) -> str:
    """The one version. Raises `VersionsDiffer`."""
    found = versions(root)
    if len(set(found.values())) != 1:
        raise VersionsDiffer(", ".join(f"{file} says {value}" for file, value in found.items()))
    return found["pyproject.toml"]

"""What the engine needs: locked with hashes, and put together for a set-up without a network."""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

from foredeck_bench.release.building import BuildFailed, run

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
    """Put the wheels of the lock file beside the npm package in `out`; gives the new tarball.

    For this machine where no platform is named. Raises `BuildFailed`.
    """
    (packed,) = (path for path in out.glob("pi-foredeck-*.tgz") if "offline" not in path.name)
    with tempfile.TemporaryDirectory() as name:
        with tarfile.open(packed) as tar:
            tar.extractall(name, filter="data")
        package = Path(name) / "package"
        wheels = package / "wheels"
        wheels.mkdir()
        for python in PYTHONS:
            _fetch(package, wheels, python, platforms)
        if built := sorted(path.name for path in wheels.iterdir() if path.suffix != ".whl"):
            raise BuildFailed(f"no wheel: {', '.join(built)}")
        target = packed.with_name(f"{packed.stem}-offline.tgz")
        with tarfile.open(target, "w:gz") as tar:
            tar.add(package, "package")
    return target


def _fetch(package: Path, wheels: Path, python: str, platforms: list[str]) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    flags = ["--require-hashes", "-r", LOCK, "--only-binary", ":all:", "-d", str(wheels)]
    for platform in platforms or [""]:
        where = ["--platform", platform] if platform else []
        run([*pip, *flags, "--python-version", python, *where], package, {})

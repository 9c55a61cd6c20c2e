"""What the engine needs: locked with hashes, and put together for a set-up without a network."""

from __future__ import annotations

import hashlib
import re
import sys
import tarfile
import tempfile
from pathlib import Path

from packaging.utils import canonicalize_name

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
        _collect(package, package / "wheels", platforms)
        target = packed.with_name(f"{packed.stem}-offline.tgz")
        with tarfile.open(target, "w:gz") as tar:
            tar.add(package, "package")
    return target


def _collect(package: Path, wheels: Path, platforms: list[str]) -> None:
    """Fetch the wheels. What is published without one is built, and its hash locked, too."""
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

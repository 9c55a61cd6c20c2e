"""The jars of the node: listed with their SHA-256 in `xtdb/jars.lock`, fetched by jgo."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck.errors import StoreError

ATTEMPTS = 3
"""How often a jar is fetched before installing fails."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One locked jar."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        """Its file name."""
        return f"{self.artifact}-{self.version}.jar"


def read_lock(file: Path) -> list[Jar]:
    """The jars of a lock file: lines of `<sha256>  <group>:<artifact>:<version>`."""
    jars = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            digest, coordinates = line.split()
            group, artifact, version = coordinates.split(":")
            jars.append(Jar(group, artifact, version, digest))
    return jars


def fetch_all(
    jars: list[Jar], cache: Path, target: Path, progress: Callable[[str], None]
) -> list[Path]:
    """Bring all jars into the folder `target`, from `cache` or from Maven Central.

    `progress` is called with the name of each jar that is in place. Raises `StoreError` for one
    that cannot be had, or whose bytes are not those of the lock file.
    """
    target.mkdir(parents=True, exist_ok=True)
    resolve = _resolver(cache)
    paths = []
    for jar in jars:
        path = target / jar.name
        _link(_fetch(jar, resolve), path)
        paths.append(path)
        progress(jar.name)
    return paths


def _fetch(jar: Jar, resolve: Callable[[Jar, bool], Path]) -> Path:
    reason = ""
    for attempt in range(ATTEMPTS):
        try:
            # A jar of the machine's own Maven cache is as good as a fetched one, if it is right.
            path = resolve(jar, attempt == 0)
        except Exception as error:  # jgo raises what its HTTP library raises
            reason = f"{type(error).__name__}: {error}"
            continue
        if _sha256(path) == jar.sha256:
            return path
        reason = "its SHA-256 is not the one in jars.lock"
        if attempt > 0:
            path.unlink(missing_ok=True)
    raise StoreError(
        f"{jar.group}:{jar.artifact}:{jar.version} cannot be fetched: {reason[:300]}\n"
        "What has come is kept: run it again when Maven Central can be reached. Without a network, "
        "bring the jars of jars.lock in a Maven repository (~/.m2/repository, or M2_REPO)."
    )


def _resolver(cache: Path) -> Callable[[Jar, bool], Path]:
    from jgo.maven import MavenContext

    machine: list[Path] = [Path(os.environ.get("M2_REPO", Path.home() / ".m2" / "repository"))]
    contexts: dict[bool, Any] = {
        near: MavenContext(repo_cache=cache, local_repos=machine if near else [], timeout=60)
        for near in (True, False)
    }

    def resolve(jar: Jar, near: bool) -> Path:
        component = contexts[near].project(jar.group, jar.artifact).at_version(jar.version)
        return Path(component.artifact().resolve())

    return resolve


def _link(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

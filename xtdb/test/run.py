"""Runs the node's own tests on the installed runtime: run.py HOME"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from foredeck.errors import StoreError
from foredeck_xtdb.runtime import find_runtime

FOLDER = Path(__file__).resolve().parent.parent


def main(home: Path) -> int:
    """The exit code of the tests; 0 where there is nothing to run them on."""
    try:
        runtime = find_runtime(home)
    except StoreError as error:
        print(f"xtdb: skipped, {error}")
        return 0
    path = os.pathsep.join([runtime.class_path, str(FOLDER / "test")])
    flags = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dsun.net.httpserver.nodelay=true"]
    flags += ["-Duser.timezone=UTC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
    command = ["clojure.main", "-m", "foredeck.node.test-runner"]
    return subprocess.run(
        [runtime.java.path, *flags, "-cp", path, *command], cwd=FOLDER, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute()))

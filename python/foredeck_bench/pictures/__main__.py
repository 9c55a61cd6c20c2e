"""`scripts/pictures`: the demo with the scripted model, and pictures of what the inspector shows.

Nothing of the machine that takes them is in the pictures but the time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from foredeck_bench.demo.run import copy_sample, run_scripted
from foredeck_bench.demo.store import demo_store
from foredeck_bench.scripted.pi_process import VERSIONS, PiWorkspace, checkout_pi

ROOT = Path(__file__).resolve().parents[3]
PICTURES = ROOT / "docs" / "pictures"
SHOOT = Path(__file__).with_name("shoot.mjs")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SCRATCH = "foredeck-pictures"
"""A folder under the temporary one whose name may stand in the pictures."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One page to be taken: name of the file, address, pixels, and a text to scroll to."""

    name: str
    path: str
    height: int
    find: str | None = None


def pictures_of(session: str, rebase: int) -> list[Picture]:
    """The pages that the README shows; `rebase` is a call of the session that folded something."""
    return [
        Picture("session", f"/sessions/{session}", 660),
        Picture("prompt", f"/sessions/{session}/calls/{rebase}", 560, "folded: "),
        Picture("tasks", "/tasks", 440),
    ]


def main() -> int:
    """Take the pictures into docs/pictures; gives the exit code."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    install = checkout_pi(ROOT, VERSIONS[0])
    if browser is None or install is None:
        missing = "Chromium is not" if browser is None else f"Pi {VERSIONS[0]} is not"
        print(f"pictures: {missing} installed here", file=sys.stderr)
        return 1
    scratch = Path(tempfile.gettempdir()) / SCRATCH
    shutil.rmtree(scratch, ignore_errors=True)
    workspace = PiWorkspace(scratch)
    copy_sample(workspace.repo)
    with demo_store(workspace.foredeck_home) as store:
        if run_scripted(install, workspace, ROOT, store):
            return 1
        with _served(store.home) as address:
            _take(browser, address, _shown(address))
    shutil.rmtree(scratch)
    for file in sorted(PICTURES.iterdir()):
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1000:.0f} kB")
    return 0


@contextmanager
def _served(home: Path) -> Iterator[str]:
    """The address of an inspector, with its token, for the time of the block."""
    command = [sys.executable, "-m", "foredeck.cli.main", "ui", "--no-open", "--home", str(home)]
    environment = {**os.environ, "TZ": "UTC"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def _shown(address: str) -> list[Picture]:
    """The demo's longer session, and its first call that folded results."""
    parts = urlsplit(address)
    base = f"{parts.scheme}://{parts.netloc}"
    with httpx.Client(follow_redirects=True) as client:
        client.get(address)

        def value(path: str) -> Any:
            return client.get(f"{base}{path}.json").raise_for_status().json()

        longest = max(value("/sessions")["sessions"], key=lambda each: each["calls"])["session"]
        calls = value(f"/sessions/{longest}")["calls_shown"]
    rebases = [each["call"] for each in calls if each["kind"] == "rebase" and each["folded"]]
    return pictures_of(longest, rebases[0])


def _take(browser: str, address: str, pages: list[Picture]) -> None:
    node = ROOT / "node_modules" / ".bin" / "node"
    PICTURES.mkdir(exist_ok=True)
    command = [str(node), str(SHOOT), browser, address, str(PICTURES)]
    asked = json.dumps([asdict(page) for page in pages])
    subprocess.run(command, input=asked, text=True, check=True)


if __name__ == "__main__":
    sys.exit(main())

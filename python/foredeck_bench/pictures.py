"""`scripts/pictures`: the demo, and pictures of it in the inspector."""

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

from foredeck_bench.demo.run import copy_sample, demo_store, run_scripted
from foredeck_bench.scripted.pi_process import VERSIONS, PiWorkspace, checkout_pi

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
SHOOT = Path(__file__).with_name("pictures.mjs")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SCRATCH = "foredeck-pictures"
"""Its name may stand in the pictures."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One page: file, address, pixels, and a text to scroll to."""

    name: str
    path: str
    height: int
    find: str | None = None


def pictures_of(session: str, rebase: int) -> list[Picture]:
    """The README's pages; `rebase` is a call that folded something."""
    return [
        Picture("session", f"/sessions/{session}", 680),
        Picture("prompt", f"/sessions/{session}/calls/{rebase}", 500),
        Picture("tasks", "/tasks", 440),
    ]


def main() -> int:
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
    command = [sys.executable, "-m", "foredeck.cli.main", "ui", "--no-open", "--home", str(home)]
    environment = {**os.environ, "TZ": "UTC"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def _shown(address: str) -> list[Picture]:
    parts = urlsplit(address)
    base = f"{parts.scheme}://{parts.netloc}"
    with httpx.Client(follow_redirects=True) as client:
        client.get(address)

        def value(path: str) -> Any:
            return client.get(f"{base}{path}.json").raise_for_status().json()

        listed = value("/overview")["sessions"]
        longest = max(listed, key=lambda each: each["calls"] or 0)["session"]
        calls = value(f"/sessions/{longest}")["listed"]
    rebases = [each["call"] for each in calls if each["kind"] == "rebase" and each["folded"]]
    return pictures_of(longest, rebases[0])


def _take(browser: str, address: str, pages: list[Picture]) -> None:
    node = ROOT / "node_modules" / ".bin" / "node"
    PICTURES.mkdir(exist_ok=True)
    command = [str(node), str(SHOOT), browser, address, str(PICTURES)]
    request = json.dumps([asdict(page) for page in pages])
    subprocess.run(command, input=request, text=True, check=True)


if __name__ == "__main__":
    sys.exit(main())

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from file_agent import FileAgent
from foredeck.config import Config
from foredeck.lookup.reader import Reader
from foredeck.store.place import open_store

HOSTILE = '<script>fetch("//evil.example")</script><img src=x onerror=alert(1)>\x1b[31m"\'{{ 7*7 }}'
LONG_LINE = "x" * 1_000_000
SECRET = "sk-ant-0123456789abcdefghijklmn"


@dataclass
class Served:
    """`foredeck ui` as a process of its own, and a browser that was let in."""

    address: str
    """The first line that it printed."""
    home: Path
    client: httpx.Client

    @property
    def base(self) -> str:
        """The address without path and token."""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def token(self) -> str:
        """What lets a browser in."""
        return parse_qs(urlsplit(self.address).query)["token"][0]

    def page(self, path: str) -> str:
        """A page that is there, as HTML, once it is complete."""
        while True:
            answer = self.client.get(path)
            assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:500]}"
            if 'http-equiv="refresh"' not in answer.text:
                return answer.text

    def value(self, path: str) -> Any:
        """The same as JSON."""
        answer = self.client.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:500]}"
        return answer.json()


def _fill(home: Path, folder: Path) -> None:
    """A session that reads, changes and names things; one that only holds what is hostile."""
    agent = FileAgent(home, folder, "0199aaaa-tidy")
    (folder / "tide.py").write_text("def spring_tide():\n    return 1\n")
    (folder / "notes").mkdir()
    (folder / "notes" / "plan.md").write_text("# Plan\n\nSee [[Tides]] and [[Nowhere]]. #sea\n")
    (folder / "notes" / "tides.md").write_text("# Tides\n\nBack to [[Plan]].\n")
    agent.answer()
    agent.read("tide.py")
    agent.read("notes/plan.md")
    agent.read("notes/tides.md")
    agent.answer()
    agent.run("write", path="tide.py", content="def spring_tide():\n    return 2\n")
    agent.close()
    hostile = FileAgent(home, folder, "0199bbbb-hostile")
    (folder / "evil<b>.md").write_text(f"# {HOSTILE}\n\n[[{HOSTILE}]] #<i>\n{LONG_LINE}\n")
    hostile.answer()
    hostile.read("evil<b>.md")
    hostile.call("bash", command=f"echo '{HOSTILE.replace(chr(39), '')}'")
    hostile.run("write", path="evil<b>.md", content=f"{HOSTILE}\n{SECRET} {Path.home()}/x\n")
    hostile.answer()
    hostile.close()


def started(home: Path, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    """`foredeck ui` on any port, and the address that it has printed."""
    command = [sys.executable, "-m", "foredeck.cli.main", "ui", "--no-open", "--port", "0"]
    process = subprocess.Popen(
        [*command, *arguments],
        env={**os.environ, "FOREDECK_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, process.stdout.readline().strip()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The inspector over a store with a tidy session and a hostile one."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("work")
    _fill(home, folder)
    Reader(Config(home=home)).warm()  # a page does not wait for long
    yield from serving(home)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Served]:
    """The inspector over a store that holds nothing yet."""
    home = tmp_path / "home"
    home.mkdir()
    open_store(Config(home=home)).close()
    yield from serving(home)


def serving(home: Path, *arguments: str) -> Iterator[Served]:
    """The inspector over what is in `home`, with a browser that was let in."""
    process, address = started(home, *arguments)
    parts = urlsplit(address)
    with httpx.Client(
        base_url=f"{parts.scheme}://{parts.netloc}", follow_redirects=True, timeout=60
    ) as client:
        assert client.get(f"/?{parts.query}").status_code == 200
        yield Served(address, home, client)
    process.terminate()
    assert process.wait(30) in (0, -15)

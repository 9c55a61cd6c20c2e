"""More changes than events can tell: the final states are right all the same."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_tracking import PATIENCE_S
from work_folder import Work

from with_git import git

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")

FOLDERS, FILES, JUNK = 3, 600, 7000


class Client:
    """The client process."""

    def __init__(self, work: Work, tmp_path: Path) -> None:
        script = Path(__file__).with_name("storm_client.py")
        self.process = subprocess.Popen(
            [sys.executable, script, tmp_path / "client.db", work.folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def states(self) -> dict[str, str | None]:
        """What the client's store holds now."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        found: dict[str, str | None] = json.loads(self.process.stdout.readline())
        return found

    def comes_to(self, expected: dict[str, str | None]) -> None:
        """Wait until the client's store holds what is on the disk."""
        end = time.monotonic() + PATIENCE_S
        while (found := self.states()) != expected:
            wrong = [path for path, text in expected.items() if found.get(path) != text]
            assert time.monotonic() < end, (len(wrong), wrong[:5])
            time.sleep(0.1)


@pytest.fixture
def tree(work: Work) -> dict[str, str | None]:
    """Files to track, with their contents."""
    names = [f"d{n % FOLDERS}/f{n}" for n in range(FILES)]
    return {work.write(name, f"first {name}"): f"first {name}" for name in names}


@pytest.fixture
def client(work: Work, tree: dict[str, str | None], tmp_path: Path) -> Iterator[Client]:
    assert tree
    client = Client(work, tmp_path)
    yield client
    client.process.kill()
    client.process.communicate(timeout=30)


def rewrite(tree: dict[str, str | None], text: str) -> None:
    for n, path in enumerate(tree):
        if n % 5 == 0:
            Path(path).unlink(missing_ok=True)
            tree[path] = None
        else:
            tree[path] = f"{text} {n}"
            Path(path).write_text(f"{text} {n}")


def test_a_storm_while_the_reader_is_stopped(
    client: Client, work: Work, tree: dict[str, str | None]
) -> None:
    client.comes_to(dict(tree))
    client.process.send_signal(signal.SIGSTOP)
    try:
        for n in range(JUNK):
            work.write(f"d{n % FOLDERS}/junk-{n}")
        rewrite(tree, "second")
        rewrite(tree, "third")
    finally:
        client.process.send_signal(signal.SIGCONT)
    client.comes_to(tree)
    path = next(path for path, text in tree.items() if text is not None)
    Path(path).write_text("after the storm")
    client.comes_to({**tree, path: "after the storm"})


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_switching_branches(work: Work, tree: dict[str, str | None], tmp_path: Path) -> None:
    git(work.folder, "init", "-q", "-b", "one")
    git(work.folder, "add", ".")
    git(work.folder, "commit", "-q", "-m", "one")
    first = dict(tree)
    git(work.folder, "checkout", "-q", "-b", "two")
    rewrite(tree, "on the other branch")
    git(work.folder, "add", "-A")
    git(work.folder, "commit", "-q", "-m", "two")
    git(work.folder, "checkout", "-q", "one")
    (work.folder / ".git").rename(tmp_path / "git")
    client = Client(work, tmp_path)
    try:
        client.comes_to(first)
        (tmp_path / "git").rename(work.folder / ".git")
        for branch, expected in (("two", tree), ("one", first), ("two", tree)):
            git(work.folder, "checkout", "-q", branch)
            client.comes_to(expected)
    finally:
        client.process.kill()
        client.process.communicate(timeout=30)

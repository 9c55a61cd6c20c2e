"""Files that a user names for a command to write: nothing but a file is ever replaced."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.stored_session import SESSION, make_home
from foredeck.cli.main import main
from foredeck.store.location import private_draft
from replay.recordings import Recording, text

Command = Callable[[Path, Path], list[str]]
"""The arguments of a command that writes a file, given the file and a folder with a recording."""

WRITING: dict[str, Command] = {
    "export": lambda file, _: ["export", SESSION, str(file)],
    "backup": lambda file, _: ["backup", str(file)],
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_home(tmp_path_factory.mktemp("written"))


@pytest.fixture
def run(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    monkeypatch.setenv("FOREDECK_HOME", str(home))
    recording = Recording()
    recording.user("Question")
    recording.assistant(text("Yes."))
    recording.write(tmp_path / "one.jsonl")
    return lambda command, file: main(WRITING[command](file, tmp_path))


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    """As root one could make a device; a link to one was replaced just the same."""
    path.symlink_to("/dev/full")


def link(path: Path) -> None:
    (path.parent / "mine").write_text("mine\n")
    path.symlink_to("mine")


def nowhere(path: Path) -> None:
    path.symlink_to("not-there")


@pytest.mark.parametrize("command", WRITING)
@pytest.mark.parametrize("make", [pipe, device, link, nowhere, Path.mkdir])
def test_what_is_no_file_is_never_replaced(
    run: Callable[..., int], command: str, make: Callable[[Path], None], tmp_path: Path
) -> None:
    target = tmp_path / "target"
    make(target)
    before = target.lstat()
    assert run(command, target) != 0
    after = target.lstat()
    assert (after.st_ino, after.st_mode, after.st_mtime_ns) == (
        before.st_ino,
        before.st_mode,
        before.st_mtime_ns,
    )
    assert not (tmp_path / "not-there").exists()
    assert make is not link or (tmp_path / "mine").read_text() == "mine\n"


@pytest.mark.parametrize("command", WRITING)
def test_what_is_written_is_for_its_owner_alone(
    run: Callable[..., int], command: str, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    if command != "backup":  # which replaces nothing but a backup
        target.write_text("old")
        target.chmod(0o644)
    left = tmp_path / ".foredeck-0123.draft"
    for file in (left, left.with_name(f"{left.name}-journal")):
        file.write_text("left by a run that was killed")
    assert run(command, target) == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.glob(".*")] == []


KILLED = """
import os, signal, sys
from pathlib import Path
from foredeck.store.location import private_draft
with private_draft(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_draft_of_a_killed_run_goes_with_the_next_and_that_of_a_live_one_stays(
    tmp_path: Path,
) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "one")])
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    with private_draft(tmp_path / "two") as outer:
        assert not left.exists()
        with private_draft(tmp_path / "three") as inner:
            inner.write(b"three")
        outer.write(b"two")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {
        "two": b"two",
        "three": b"three",
    }


def test_prompts_are_written_over_nothing(run: Callable[..., int], tmp_path: Path) -> None:
    del run
    out, mine = tmp_path / "out", tmp_path / "mine"
    mine.mkdir()
    (mine / "0001.json").write_text("mine")
    out.mkdir()
    (out / "one").symlink_to(mine)
    command = ["replay", str(tmp_path / "one.jsonl"), "--prompts", str(out)]
    assert main(command) == 2
    assert (mine / "0001.json").read_text() == "mine"
    (out / "one").unlink()
    (out / "one").mkdir()
    (out / "one" / "0001.json").symlink_to(mine / "0001.json")
    assert main(command) == 0
    assert stat.S_IMODE((out / "one" / "0001.json").lstat().st_mode) == 0o600
    assert (mine / "0001.json").read_text() == "mine"

"""Each command, run in the hostile repository: nothing outside it is shown, nothing in it runs."""

from __future__ import annotations

import contextlib
import hashlib
import io
import shutil
import sys
from pathlib import Path

import pytest

from file_agent import FileAgent
from foredeck.cli.main import main
from foredeck.cli.registry import COMMANDS
from hostile.conftest import give_notes_up_soon
from hostile.ground import SECRET, Ground, make

APART = {
    "eval": "runs Pi",
    "xtdb": "starts a node",
    "ui": "serves until it is ended",
    "proxy": "serves until it is ended",
}
"""Commands that are not run here, with the reason; those that measure foredeck are builders'."""

RUN = [
    *("sessions", "sessions --json", "objects", "objects --session s --json", "show s"),
    *("show s --call 1", "cost s", "blame src/app.py", "blame src/keys.txt", "blame docs/guide.md"),
    *("trace s hello", "history src/app.py", "history src/keys.txt", "cat src/app.py"),
    *("cat src/keys.txt", "cat .pi/notes/keys.md", "history --diff src/app.py"),
    *("restore s --call 1 --dry-run --diff", "restore s --call 1 --to OUT/copies"),
    *("restore s --call 1", "restore s --undo", "search hello", "search secret"),
    *("doctor --rebuild", "name src/app.py app", "name src/app.py --short short", "tasks list"),
    *("tasks new hostile", "index .", "index docs", "index notes", "index pipe zero elsewhere src"),
    *("index src/keys.txt/.. .pi", "notes", "memory list --session s"),
    "memory add fact --session s --ground src/app.py",
    *("memory add fact --session s --ground git:HEAD", "working", "observations s"),
    *("graph .pi/notes/plain.md", "graph --backlinks .pi/notes/plain.md", "graph --tags"),
    "graph .pi/notes/plain.md --content --depth 3 --budget 20000",
    *("graph src/app.py src/keys.txt --content", "export s OUT/session.jsonl"),
    *("import hostile.jsonl", "backup OUT/backup.db", "carry s --to codex --dry-run", "ingest ."),
    *("purge --text hello-again --yes", "forget s --yes", "forget --texts --yes"),
    *("doctor --vacuum", "doctor", "config", "config --trusted --project .", "replay ."),
    *("replay hostile.jsonl --prompts OUT/prompts", "migrate sqlite sqlite:OUT/other.db"),
    *("mcp --trusted", "engine"),
]


def test_every_command_is_run() -> None:
    ours = {name for name in COMMANDS if name.partition(" ")[0] != "bench"}
    left = ours - {line.partition(" ")[0] for line in RUN}
    assert left == set(APART), "add a line to RUN, or to APART with the reason"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """The repository, with the state folder of a session in it."""
    ground = make(tmp_path_factory.mktemp("ground"))
    with pytest.MonkeyPatch.context() as patch:
        give_notes_up_soon(patch)
        patch.chdir(ground.repo)
        agent = FileAgent(ground.root / "home", ground.repo)
        agent.answer()
        agent.read("src/app.py")
        agent.run("write", path="src/app.py", content="print('hello')\n")
        agent.call("bash", command="ls -R . ; cat README.md src/app.py > made.txt")
        agent.answer()
        agent.run("write", path="src/app.py", content="print('hello again')\n")
        agent.close()
    first = '{"type":"session","id":"../../x","cwd":"/"}'
    ground.write("hostile.jsonl", first + '\n{"a":' + "[" * 9_999)
    assert ground.ran() == []
    return ground


def state_of(folder: Path) -> dict[str, str]:
    """What is in a folder, by path."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("line", RUN)
def test_nothing_runs_and_nothing_from_outside_is_shown(
    line: str,
    made: Ground,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    shutil.copytree(made.root / "home", home)
    home.chmod(0o700)
    out.mkdir()
    users = state_of(made.user)
    monkeypatch.chdir(made.repo)
    monkeypatch.setenv("HOME", str(made.user))
    monkeypatch.setenv("FOREDECK_HOME", str(home))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with contextlib.suppress(SystemExit):
        main([word.replace("OUT", str(out)) for word in line.split()])
    said = "".join(capfd.readouterr())
    # A line that this command does not have proves nothing.
    assert "--help` explains" not in said, said
    assert "Traceback" not in said
    assert SECRET not in said
    assert made.ran() == []
    assert state_of(made.user) == users
    assert SECRET.encode() not in b"".join(
        path.read_bytes() for folder in (home, out) for path in folder.rglob("*") if path.is_file()
    )

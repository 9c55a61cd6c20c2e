"""No name and no text that is stored steers the terminal of whoever looks at it."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from file_agent import FileAgent
from foredeck.cli.main import main
from foredeck.config import Config
from foredeck.memory.keeping import NewMemory
from foredeck.memory.trust import load_user
from foredeck.memory.user_acts import UserActs
from foredeck.store.place import open_store

STEERS = "\x1b]0;owned\x07\x1b[2J\x9b1m\u202etxt\u200b\U000e0041"
"""Sets a title, clears the screen, colours, turns text round, hides."""
HIDDEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e0fff]"
)
NOTE = f"# Title {STEERS}\n\nSee [[{STEERS}]]. #tag{STEERS}\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session in which everything has such a name."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp(f"work{STEERS}")
    agent = FileAgent(home, folder, tools={"tasks": "on"})
    (folder / "notes").mkdir()
    (folder / "notes" / f"a{STEERS}\nb.md").write_text(NOTE)
    agent.answer()
    agent.read(f"notes/a{STEERS}\nb.md")
    agent.run("write", path=f"f{STEERS}.txt", content=f"one\n{STEERS}\n")
    agent.answer()
    agent.run("write", path=f"f{STEERS}.txt", content=f"two\n{STEERS}\n")
    agent.call("bash", command=f"false '{STEERS}'")
    agent.answer()
    agent.close()
    with closing(open_store(Config(home=home))) as store:
        memory = UserActs(store, load_user(home))
        memory.add(NewMemory("fact", f"Fact {STEERS}", session="s"))
    return home


COMMANDS = [
    *("sessions", "sessions --json", "show s", "show s --sets", "history {file}", "history {note}"),
    *("search two", "notes", "tags", "backlinks {note}", "graph {note}", "graph {note} --dot"),
    *("notes --check", "memory list --session s", "tasks", "tasks list", "blame {file}"),
    *("trace s two", "report s", "report s --full", "cost s", "restore s --call 1 --dry-run"),
    *("doctor", "cat session:s", "history nothing{steers}", "frobnicate{steers}"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_listed_steers_nothing_also_through_a_pipe(
    command: str, monkeypatch: pytest.MonkeyPatch, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOREDECK_HOME", str(home))
    names = {"{file}": f"f{STEERS}.txt", "{note}": f"a{STEERS}\nb.md", "{steers}": STEERS}
    words = command.split()
    for sign, name in names.items():
        words = [word.replace(sign, name) for word in words]
    main(words)
    printed = capsys.readouterr()
    said = printed.out + printed.err
    assert said
    assert "Traceback" not in said
    if "--json" not in command:
        assert HIDDEN.findall(said) == []


def piped(home: Path, *words: str) -> bytes:
    """What a command gives to a program."""
    command = [sys.executable, "-m", "foredeck.cli.main", *words]
    environ = {**os.environ, "FOREDECK_HOME": str(home)}
    return subprocess.run(command, env=environ, check=True, capture_output=True).stdout


def on_a_terminal(home: Path, *words: str) -> str:
    """What a command gives to a terminal; the colours that are foredeck's own are left out."""
    outer, inner = pty.openpty()
    command = [sys.executable, "-m", "foredeck.cli.main", *words]
    environ = {**os.environ, "FOREDECK_HOME": str(home), "TERM": "xterm", "PAGER": "cat"}
    process = subprocess.Popen(command, env=environ, stdout=inner, stderr=inner, stdin=inner)
    os.close(inner)
    said = b""
    try:
        while data := os.read(outer, 1 << 16):
            said += data
    except OSError:  # the other side is gone
        pass
    assert process.wait(60) == 0
    os.close(outer)
    text = said.decode().replace("\r\n", "\n").replace("\r\x1b[K", "")
    return re.sub("\x1b\\[(?:[012]|3[123])?m", "", text)


def test_contents_stay_as_they_are_in_a_pipe_and_are_shown_on_a_terminal(home: Path) -> None:
    name = f"f{STEERS}.txt"
    assert piped(home, "cat", name) == f"two\n{STEERS}\n".encode()
    assert f"\n {STEERS}\n".encode() in piped(home, "history", "--diff", name)
    assert STEERS in json.loads(piped(home, "cat", name, "--json"))["content"]
    assert "\u202e".encode() in piped(home, "cat", name, "--json")
    assert STEERS.encode() in piped(home, "graph", "--content", f"a{STEERS}\nb.md")
    assert STEERS in json.dumps(
        [json.loads(line) for line in piped(home, "export", "s", "-").splitlines()],
        ensure_ascii=False,
    ).replace("\\u001b", "\x1b").replace("\\u0007", "\a")
    for words in (
        ("cat", name),
        ("cat", name, "--json"),
        ("history", "--diff", name),
        ("graph", "--content", f"a{STEERS}\nb.md"),
        ("restore", "s", "--call", "1", "--dry-run", "--diff"),
    ):
        said = on_a_terminal(home, *words)
        assert "\\u202etxt" in said
        assert HIDDEN.findall(said) == [], words
    assert json.loads(on_a_terminal(home, "cat", name, "--json"))["content"] == f"two\n{STEERS}\n"


def test_colours_of_ours_reach_the_terminal(home: Path) -> None:
    outer, inner = pty.openpty()
    command = [sys.executable, "-m", "foredeck.cli.main", "history", f"f{STEERS}.txt"]
    environ = {**os.environ, "FOREDECK_HOME": str(home), "TERM": "xterm", "PAGER": "cat"}
    environ.pop("NO_COLOR", None)
    done = subprocess.run(command, env=environ, stdout=inner, stdin=inner, check=False)
    os.close(inner)
    said = os.read(outer, 1 << 16)
    os.close(outer)
    assert done.returncode == 0
    assert b"\x1b[1m" in said
    assert b"\x1b]0;" not in said

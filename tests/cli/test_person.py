"""Erasing, memory and the like are for a person: what an agent's shell is refused."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from context.driver import Host
from foredeck.cli import person
from foredeck.cli.person import OF_AN_AGENT
from foredeck.config import Config
from foredeck.model.documents import session_object_id
from foredeck.sources.filesystem import open_filesystems
from foredeck.sources.projects import project_of
from foredeck.store.at_work import EngineAtWork
from foredeck.store.place import open_store
from foredeck.tasks.board import Actor
from foredeck.tasks.work import NewTask, TaskWork
from processes import run_program

HOST = """
import subprocess, sys
from pathlib import Path
from foredeck.store.at_work import AtWork
AtWork(Path(sys.argv[1])).on("the-agents")
print(subprocess.run(["sh", "-c", sys.argv[2]], capture_output=True, text=True).returncode)
"""
"""A host with an engine, which runs a command as its agent's shell."""

FOREDECK = str(Path(sys.executable).with_name("foredeck"))
FORGET = f"{FOREDECK} forget first --yes"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    host = Host(home, session="first").begin()
    host.close()
    monkeypatch.setenv("FOREDECK_HOME", str(home))
    monkeypatch.delenv(OF_AN_AGENT, raising=False)
    return home


def is_stored(home: Path) -> bool:
    with closing(open_store(Config(home=home))) as store:
        return store.head(session_object_id("first")) is not None


def in_a_terminal(command: list[str]) -> int:
    """The exit code of a command that a person runs in a terminal of its own."""
    pid, descriptor = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    try:
        while os.read(descriptor, 4096):
            pass
    except OSError:  # the other end is closed
        pass
    os.close(descriptor)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize(
    "command",
    [
        FORGET,
        f"env -u {OF_AN_AGENT} {FORGET}",
        f"env -i FOREDECK_HOME=$FOREDECK_HOME {FORGET}",
        f"setsid {FORGET}",
        f"{sys.executable} -c 'import pty,sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' {FORGET}",
        f"{FOREDECK} purge --text something-long --yes",
        f"{FOREDECK} memory add something",
        f"{FOREDECK} observations first --delete",
        f"{FOREDECK} restore $FOREDECK_HOME/foredeck.db --force",
    ],
)
def test_an_agents_shell_is_refused_whatever_it_drops(home: Path, command: str) -> None:
    said = run_program(
        sys.executable, "-c", HOST, str(home), command, stdin=subprocess.DEVNULL, check=True
    )
    assert said.stdout.strip() == "2"
    assert is_stored(home)


def test_a_pi_that_is_the_first_process_of_a_container_is_seen(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getppid", lambda: 1)
    monkeypatch.setattr(person, "engines_at_work", lambda _: [EngineAtWork(2, 1, "first")])
    assert person.agent_above(home) == "first"


@pytest.fixture
def agent_at_work(home: Path) -> Iterator[None]:
    """Somebody else's Pi on the same state folder."""
    with subprocess.Popen(
        [sys.executable, "-c", HOST, str(home), "echo >&2; cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as process:
        while not list(home.glob("at-work/*")):
            pass
        yield
        process.stdin.close()


@pytest.mark.usefixtures("agent_at_work")
def test_a_detached_process_is_refused_while_an_agent_is_at_work(home: Path) -> None:
    said = subprocess.run(FORGET.split(), capture_output=True, text=True, start_new_session=True)
    assert (said.returncode, "no terminal" in said.stderr) == (2, True)
    assert is_stored(home)


@pytest.mark.usefixtures("agent_at_work")
def test_a_person_in_a_terminal_is_not(home: Path) -> None:
    assert in_a_terminal(FORGET.split()) == 0
    assert not is_stored(home)


def test_a_script_of_the_users_is_not_while_nobody_is_at_work(home: Path) -> None:
    said = subprocess.run(FORGET.split(), capture_output=True, start_new_session=True)
    assert said.returncode == 0
    assert not is_stored(home)


def said_in_a_session(home: Path, folder: Path, command: str) -> str:
    """What a command says that the shell of the session "the-agents" runs in this project."""
    code = HOST.replace("capture_output=True, text=True).returncode", "cwd=sys.argv[3]).returncode")
    arguments = [sys.executable, "-c", code, str(home), command, str(folder)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


@pytest.mark.parametrize("drop", [f"env {OF_AN_AGENT}=another ", "setsid -w "])
def test_an_agents_shell_neither_takes_anothers_task_nor_passes_for_a_person(
    home: Path, tmp_path: Path, drop: str
) -> None:
    project = project_of(str(tmp_path), open_filesystems(Config(home=home), str(tmp_path)))
    with closing(open_store(Config(home=home))) as store:
        work = TaskWork(store, project.id, Actor("another"))
        task = work.claim(work.create(NewTask("Held")).id).task
        name = work.name(task)
    tasks = f"{drop}{FOREDECK} tasks"
    for action in (f"close {name} done", f"open {name}"):
        assert "Already claimed" in said_in_a_session(home, tmp_path, f"{tasks} {action}")
    assert "--as is not allowed" in said_in_a_session(
        home, tmp_path, f"{tasks} claim {name} --as ann"
    )
    own = said_in_a_session(home, tmp_path, f"{tasks} new Mine --json")
    assert '"generator": "agent"' in own
    with closing(open_store(Config(home=home))) as store:
        assert store.head(task.id).fields["session"] == "another"

"""Commands that change thousands of files: what is kept of them, and what is said of the others."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from file_agent import FileAgent as Agent
from foredeck.cli.main import main
from foredeck.model.records import UNKNOWN, changes_of
from foredeck.timeline import keeping
from foredeck.timeline.keeping import FOLDER_FILES, ChangeKeeper
from with_git import git

MANY = FOLDER_FILES + 500
ALL = "find . -name '*.txt' | xargs sed -i s/one/two/"

MakeAgent = Callable[..., Agent]


def fill(folder: Path, count: int) -> list[Path]:
    files = [folder / f"d{number % 20}" / f"f{number}.txt" for number in range(count)]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"one of {file.name}\n")
    return files


def restored(agent: Agent, *more: str) -> int:
    return main(["restore", agent.session, "--call", "1", "--home", str(agent.home), *more])


@pytest.mark.parametrize("in_git", [True, False])
def test_all_of_them_are_brought_back(
    agent: Agent, capsys: pytest.CaptureFixture[str], in_git: bool
) -> None:
    files = fill(agent.cwd, MANY)
    if in_git:
        commit(agent.cwd)
    agent.answer()
    agent.run("bash", command=ALL)
    assert files[0].read_text() == "two of f0.txt\n"
    assert restored(agent) == 0
    assert f"{MANY:,} files brought back." in capsys.readouterr().out
    assert {file.read_text().partition(" ")[0] for file in files} == {"one"}


def commit(folder: Path) -> None:
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        git(folder, *command)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time to read anything before a command."""
    monkeypatch.setattr(keeping, "BUDGET_SHARE", 0.0)


@pytest.mark.usefixtures("hurried")
def test_what_cannot_be_brought_back_is_said(
    agent: Agent, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(agent.cwd, 60)
    agent.answer()
    agent.run("bash", command=ALL)
    assert restored(agent) == 1
    said = capsys.readouterr().out
    assert "0 files brought back.\n60 files cannot be brought back" in said
    assert "\n  d0/f0.txt\n" in said
    assert "\n  and 40 more" in said
    assert restored(agent, "--json") == 1
    assert len(json.loads(capsys.readouterr().out)["uncovered"]) == 60
    assert restored(agent, "--path", str(agent.cwd / "d0" / "f0.txt")) == 1
    assert "1 file cannot be brought back" in capsys.readouterr().out


@pytest.mark.usefixtures("hurried")
def test_a_folder_that_nobody_could_look_through_is_no_success(
    agent: Agent, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(agent.cwd, MANY)
    commit(agent.cwd)
    agent.answer()
    agent.run("bash", command=ALL)
    assert restored(agent) == 1
    assert "could not be looked through in time" in capsys.readouterr().out


@pytest.mark.usefixtures("hurried")
def test_in_pi_it_is_said_as_well(agent: Agent) -> None:
    from timeline.test_rewind_commands import typed

    fill(agent.cwd, 3)
    (agent.cwd / "a.txt").write_text("one\n")
    agent.answer()
    agent.call("write", path="a.txt", content="two\n")
    agent.run("bash", command="sed -i s/one/two/ d*/f*.txt")
    assert "3 files cannot be brought back" in typed(agent, "1")
    assert "1 file brought back.\n3 files cannot be brought back" in typed(agent, "1 yes")


def keeper_of(agent: Agent) -> ChangeKeeper:
    assert agent.engine.opened.keeper is not None
    return agent.engine.opened.keeper


def kept(agent: Agent) -> list[Any]:
    heads = agent.engine.opened.session.objects.store.query("change", {"session": agent.session})
    return [change for head in heads for change in changes_of(head.fields)]


@pytest.fixture
def idle(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """An agent whose engine has no time for what a command has changed before it is idle."""
    monkeypatch.setattr(keeping, "WARMING_S", 0.0)
    fill(agent.cwd, 40)
    agent.answer()
    keeper_of(agent)._ending_s = 0.0
    return agent


def test_what_a_command_has_left_is_read_while_nobody_waits(idle: Agent) -> None:
    idle.run("bash", command=ALL)
    assert UNKNOWN in {change.after for change in kept(idle)}
    assert not keeper_of(idle).go_on(math.inf)
    changes = kept(idle)
    assert len(changes) == 40
    assert UNKNOWN not in {change.after for change in changes}
    assert restored(idle) == 0


def test_what_is_changed_again_before_that_stays_unknown(idle: Agent) -> None:
    idle.run("bash", command=ALL)
    (touched,) = (idle.cwd / "d0").glob("f0.txt")
    touched.write_text("a person's\n")
    idle.engine.close()
    agent = Agent(idle.home, idle.cwd, idle.session)
    unknown = [change.path for change in kept(agent) if change.after == UNKNOWN]
    agent.close()
    assert unknown == [str(touched)]
    assert restored(idle) == 1, "it may be somebody's work"
    assert touched.read_text() == "a person's\n"


def test_files_are_read_before_the_first_command(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(agent.cwd, 60)
    agent.answer()
    while keeper_of(agent).go_on(0.001):
        pass
    monkeypatch.setattr(keeping, "BUDGET_SHARE", 0.0)
    monkeypatch.setattr(keeping, "is_fresh", lambda _seen: False)  # they are older than this test
    agent.run("bash", command=ALL)
    assert restored(agent) == 0


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("read", {"path": "a.txt"}, "have changed no files"),
        ("bash", {"command": "echo two > a.txt"}, "Nothing is kept of what"),
        ("write", {"path": "a.txt", "content": "two"}, "`rewind` or foredeck was off"),
    ],
)
def test_nothing_kept_is_not_nothing_changed(
    make_agent: MakeAgent, capsys: pytest.CaptureFixture[str], tool: str, arguments: Any, said: str
) -> None:
    agent = make_agent(rewind=False)
    (agent.cwd / "a.txt").write_text("one\n")
    agent.answer()
    if tool == "read":
        agent.read("a.txt")
        agent.answer()
    else:
        agent.run(tool, **arguments)
    assert restored(agent) == 4
    assert said in capsys.readouterr().err

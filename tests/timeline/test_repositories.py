"""Rewinding what commands did in a folder too large to be looked through: git tells."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from file_agent import FileAgent as Agent
from foredeck.hosts.protocol import CommandParams
from foredeck.timeline import keeping, rewinding
from timeline.conftest import MakeAgent
from with_git import git


def contents(folder: Path) -> dict[str, str]:
    """Files, links and what they hold, git's own left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.startswith(".git/") or (path.is_dir() and not path.is_symlink()):
            continue
        held = str(path.readlink()) if path.is_symlink() else path.read_text()
        found[name] = f"{path.lstat().st_mode:o} {held}"
    return found


@pytest.fixture
def large(make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """An agent in a folder that counts as too large."""
    monkeypatch.setattr(keeping, "FOLDER_FILES", 3)
    monkeypatch.setattr(keeping, "MANY_FILES", 3)
    agent = make_agent()
    for name in ("clean", "dirty", "gone", "run.sh"):
        (agent.cwd / name).write_text(f"{name} as committed\n")
    (agent.cwd / "run.sh").chmod(0o755)
    (agent.cwd / "link").symlink_to("clean")
    return agent


@pytest.fixture
def tracked(large: Agent) -> Agent:
    """The same in a git repository, with a changed, an untracked and an ignored file."""
    git(large.cwd, "init", "-q")
    (large.cwd / ".gitignore").write_text("ignored*\n")
    git(large.cwd, "add", "-A")
    git(large.cwd, "commit", "-qm", "One")
    (large.cwd / "dirty").write_text("changed by a person\n")
    (large.cwd / "notes").write_text("untracked\n")
    (large.cwd / "ignored").write_text("ignored\n")
    large.answer()
    time.sleep(0.1)  # what is there is older than the command, by the file system's clock too
    return large


def rewind(agent: Agent, call: int) -> rewinding.Rewound:
    opened = agent.engine.opened
    plan = rewinding.plan_for_call(opened.session.objects.store, agent.session, call)
    assert not plan.blind
    assert plan.uncovered == []
    return rewinding.apply(opened.session.objects.store, agent.home, agent.session, plan)


@pytest.mark.parametrize(
    "command",
    [
        "echo new > made; mkdir -p sub; echo deep > sub/made; echo x >> notes; echo y >> dirty",
        "rm gone notes; mv clean moved; echo z > run.sh; chmod 644 run.sh; ln -sfn gone link",
        "git rm -q gone; git stash -q; echo w > notes",
        "echo n > notes; git add -A; git -c user.name=A -c user.email=a@b commit -qm Two; rm clean",
        "git checkout -q -f HEAD; git checkout -qb other; echo b > clean; git add -f ignored",
        "echo > .gitignore",
    ],
)
def test_what_a_command_did_is_taken_back(tracked: Agent, command: str) -> None:
    before = contents(tracked.cwd)
    tracked.call("bash", command=command)
    last = tracked.answer()
    after = contents(tracked.cwd)
    assert after != before
    assert rewind(tracked, 1).failed == {}
    assert contents(tracked.cwd) == before
    assert rewind(tracked, last).failed == {}
    assert contents(tracked.cwd) == after


def test_files_whose_bytes_git_converts_are_named(tracked: Agent) -> None:
    (tracked.cwd / ".gitattributes").write_text("clean eol=crlf\n")
    tracked.call("bash", command="for f in cl* go*; do echo x >>$f; done")
    tracked.answer()
    opened = tracked.engine.opened
    plan = rewinding.plan_for_call(opened.session.objects.store, "s", 1)
    assert plan.uncovered == [str(tracked.cwd / "clean")]
    assert [file.path for file in plan.files] == [str(tracked.cwd / "gone")]


def test_outside_git_it_is_said_once_that_commands_ran_unseen(large: Agent) -> None:
    large.answer()
    for _ in range(2):
        large.call("bash", command="echo x >ma$(echo de)")
        large.answer()
    params = CommandParams(session="s", name="rewind", args="1")
    said = large.engine.command(params)["text"]
    assert "what they did to files unknown to the session is not covered" in said
    opened = large.engine.opened
    assert len(opened.session.objects.store.query("change", {"session": "s"})) == 1
    params = CommandParams(session="s", name="rewind", args="")
    assert "they have changed none that was seen" in large.engine.command(params)["text"]

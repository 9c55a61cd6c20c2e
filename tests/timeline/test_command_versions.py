"""Files that commands change, read or not: they have versions, and their lines an author."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from file_agent import FileAgent as Agent
from foredeck.cli.main import main
from foredeck.config import Config
from foredeck.engine.engine import Engine
from foredeck.hosts.host import Host
from foredeck.hosts.protocol import RunningTool
from foredeck.sources.snapshots import tool_call_of
from foredeck.store.protocol import Head
from foredeck.store.store import Store
from foredeck.timeline import command_versions, keeping
from foredeck.timeline.blame import blame, text_of_version
from with_git import git

MakeAgent = Callable[..., Agent]
HERE = "cat > made.py <<'END'\ndef made():\n    return 1\nEND"


def store_of(agent: Agent) -> Store:
    return agent.engine.opened.session.objects.store


def versions(agent: Agent, name: str) -> list[Head]:
    id, _ = agent.engine.opened.session.objects.source.identify(name, str(agent.cwd))
    return store_of(agent).history(id)


def texts(agent: Agent, name: str) -> list[str]:
    """Of each version; none of those that only say that the file was named."""
    shown = (v for v in versions(agent, name) if v.fields["state"] != "listed")
    return [text_of_version(store_of(agent), version) for version in shown]


@pytest.fixture
def said(agent: Agent, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """What a command prints as JSON."""

    def run(*arguments: str) -> Any:
        capsys.readouterr()
        assert main([*arguments, "--json", "--home", str(agent.home)]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_an_unread_file_has_a_history_and_its_lines_an_author(
    agent: Agent, said: Callable[..., Any]
) -> None:
    file = agent.cwd / "a.py"
    file.write_text("one = 1\ntwo = 2\n")
    agent.answer()
    agent.run("bash", command="sed -i s/one/uno/ a.py")
    assert texts(agent, "a.py") == ["one = 1\ntwo = 2\n", "uno = 1\ntwo = 2\n"]
    assert [tool_call_of(version) for version in versions(agent, "a.py")][-2:] == [None, "s-1"]

    assert said("history", str(file))["versions"][-1]
    assert [
        (line["text"], line["by"], line["call"], line["first_version"])
        for line in said("blame", str(file))["lines"]
    ] == [("uno = 1", "agent", 1, False), ("two = 2", "person", None, True)]
    (planned,) = said("restore", "s", "--call", "1", "--dry-run")["files"]
    assert planned["path"] == str(file)


@pytest.mark.parametrize(
    ("command", "name", "made"),
    [
        (HERE, "made.py", ["def made():\n    return 1\n"]),
        ("cp a.py b.py", "b.py", ["one\n"]),
        ("echo two >> a.py", "a.py", ["one\n", "one\ntwo\n"]),
        ("rm a.py", "a.py", ["one\n", ""]),
        ("mkdir -p d && mv a.py d/b.py", "d/b.py", ["one\n"]),
    ],
)
def test_however_a_command_writes(agent: Agent, command: str, name: str, made: list[str]) -> None:
    (agent.cwd / "a.py").write_text("one\n")
    agent.answer()
    agent.run("bash", command=command)
    assert texts(agent, name) == made
    newest = versions(agent, name)[-1]
    assert tool_call_of(newest) == "s-1"


def test_a_file_that_is_moved_keeps_its_history(agent: Agent) -> None:
    (agent.cwd / "a.py").write_text("one\n")
    agent.answer()
    agent.run("bash", command="mv a.py b.py")
    gone, arrived = versions(agent, "a.py")[-1], versions(agent, "b.py")[-1]
    assert gone.fields["moved_to"] == arrived.id
    assert arrived.fields["provenance"]["parent_refs"] == [f"moved_from:{gone.id}"]


def test_nothing_of_it_is_in_the_prompt(make_agent: MakeAgent) -> None:
    """Not when it is made, not when a later command names it, not when it changes once more."""

    def prompts(**settings: Any) -> list[tuple[str, int]]:
        agent = make_agent(**settings)
        (agent.cwd / "a.py").write_text("one\n")
        seen = []
        for command in (
            *("sed -i s/one/two/ a.py", HERE, "cat a.py made.py"),
            *("sed -i s/two/three/ a.py; echo '# more' >> made.py", "ls"),
        ):
            agent.run("bash", command=command)
            seen.append((agent.prompt, len(agent.engine.opened.session.objects.index)))
        assert settings or texts(agent, "a.py") == ["one\n", "two\n", "three\n"]
        agent.close()
        for name in ("a.py", "made.py"):
            (agent.cwd / name).unlink()
        return seen

    assert prompts(session="with") == prompts(session="without", rewind=False)


def test_a_tool_that_reads_it_brings_it_into_the_session(agent: Agent) -> None:
    agent.answer()
    agent.run("bash", command=HERE)
    agent.read("made.py")
    agent.answer()
    assert agent.ordinal("made.py")
    agent.run("bash", command="echo '# more' >> made.py")
    assert list(dict.fromkeys(texts(agent, "made.py"))) == [
        "def made():\n    return 1\n",
        "def made():\n    return 1\n# more\n",
    ]
    assert "made.py" in agent.prompt


def test_what_is_left_out_is_counted(agent: Agent) -> None:
    git(agent.cwd, "init", "-q")
    (agent.cwd / ".gitignore").write_text("out/\n*.log\n")
    agent.answer()
    agent.run(
        "bash",
        command="mkdir out; echo x | tee out/a.js b.log .env .env.example deploy.pem c.txt; "
        "printf '\\0\\1' > d.bin; head -c 3000000 /dev/zero | tr '\\0' 'a' > e.txt",
    )
    shown = [head for head in store_of(agent).query("file") if head.fields["text_hash"]]
    made = {Path(str(head.fields["source"]["path"])).name for head in shown}
    assert made == {".env.example", "c.txt"}
    assert store_of(agent).query("change")[-1].fields["unversioned"] == {
        "ignored by git": 2,
        "larger than 2 MiB": 1,
        "that are no text": 1,
        "that may hold keys": 2,
    }


def test_a_key_that_a_tool_has_read_has_a_history(agent: Agent) -> None:
    (agent.cwd / ".env").write_text("A=1\n")
    agent.answer()
    agent.read(".env")
    agent.answer()
    agent.run("bash", command="sed -i s/1/2/ .env")
    assert texts(agent, ".env") == ["A=1\n", "A=2\n"]


def test_a_private_session_leaves_no_versions(agent: Agent) -> None:
    agent.engine.opened.session.chat.private = True
    agent.answer()
    agent.run("bash", command=HERE)
    assert texts(agent, "made.py") == []


def test_what_is_outside_the_project_has_no_versions(agent: Agent) -> None:
    outside = agent.cwd.parent / "outside.txt"
    agent.answer()
    agent.run("bash", command=f"echo x > {outside}")
    assert outside.exists()
    assert texts(agent, str(outside)) == []


def test_many_files_get_their_versions_while_nobody_waits(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_versions, "MOST_FILES", 50)
    agent.answer()
    keeper = agent.engine.opened.keeper
    keeper._ending_s = 0.0
    monkeypatch.setattr(keeping, "WARMING_S", 10.0)
    agent.run("bash", command="for i in $(seq 60); do echo $i > f$i.txt; done")
    while keeper.go_on(0.001):
        pass
    assert len(store_of(agent).query("file")) == 50
    change = store_of(agent).query("change")[-1]
    assert change.fields["unversioned"] == {"of more than 50 at once": 10}


def test_a_newer_version_is_not_replaced(agent: Agent) -> None:
    """What somebody has made of a file in the meantime is its newest version."""
    keeper = agent.engine.opened.keeper
    agent.answer()
    id, _ = agent.prepare("bash", command=HERE)
    subprocess.run(["bash", "-c", HERE], cwd=agent.cwd, check=True)
    keeper.end(id)
    (agent.cwd / "made.py").write_text("a person's\n")
    agent.read("made.py")
    keeper.store_versions()
    assert texts(agent, "made.py") == ["a person's\n"]


@pytest.mark.parametrize("restarted", [False, True])
def test_the_guard_knows_what_a_command_has_made(agent: Agent, restarted: bool) -> None:
    agent.answer()
    agent.run("bash", command=HERE)
    if restarted:
        agent.engine.close()
        agent = Agent(agent.home, agent.cwd, agent.session)
    (agent.cwd / "made.py").write_text("def made():\n    return 'mine'\n")
    refused = agent.call("write", path="made.py", content="def made():\n    return 2\n")
    assert "'mine'" in refused["block"]
    agent.close()


def test_notes_that_a_command_writes_are_read_at_once(agent: Agent) -> None:
    agent.answer()
    agent.run(
        "bash",
        command="mkdir -p .pi/notes; printf '# Plan\\n\\nSee [[Other]].\\n' > .pi/notes/Plan.md",
    )
    session = agent.engine.opened.session
    assert session.objects.open_graph is not None
    with session.objects.open_graph() as graph:
        (node,) = graph.named("Plan")
        assert graph.links(node.id) or graph.unresolved_in(node.id)


def test_lines_that_a_rewinding_brings_back_are_whose_they_were(
    agent: Agent, said: Callable[..., Any]
) -> None:
    file = agent.cwd / "a.py"
    file.write_text("one\n")
    agent.answer()
    agent.run("bash", command="echo two >> a.py")

    def authors() -> list[tuple[str, Any]]:
        agent.read("a.py")  # so that what is there now is a version
        return [(line["by"], line["call"]) for line in said("blame", str(file))["lines"]]

    assert authors() == [("person", None), ("agent", 1)]
    home = ("--home", str(agent.home))
    assert main(["restore", "s", "--call", "1", *home]) == 0
    assert authors() == [("person", None)]
    assert main(["restore", "s", "--undo", *home]) == 0
    assert authors() == [("person", None), ("agent", 1)]
    assert main(["blame", str(file), *home]) == 0


def test_the_inspector_names_the_same_authors(agent: Agent) -> None:
    (agent.cwd / "a.py").write_text("one\n")
    agent.answer()
    agent.run("bash", command="mv a.py b.py && echo two >> b.py")
    agent.run("bash", command="echo three >> b.py")
    (agent.cwd / "b.py").write_text("one\ntwo\nthree\nfour\n")
    agent.read("b.py")
    lines = blame(store_of(agent), versions(agent, "b.py"))
    named = [(line.text, line.author.name, line.author.call) for line in lines]
    assert named[1:] == [("two", None, 1), ("three", None, 2), ("four", "a person", None)]


@pytest.mark.parametrize("command", ["ls", "ls d", "ls -la d/", "cd d && ls ../e"])
def test_a_listing_by_a_command_finds_files_as_the_tool_does(agent: Agent, command: str) -> None:
    for name in ("top.txt", "d/in_d.txt", "e/in_e.txt"):
        (agent.cwd / name).parent.mkdir(exist_ok=True)
        (agent.cwd / name).write_text("text\n")
    agent.answer()
    agent.run("bash", command=command)
    found = {Path(str(h.fields["source"]["path"])).name for h in store_of(agent).query("file")}
    wanted = {"ls": "top.txt", "cd d && ls ../e": "in_e.txt"}.get(command, "in_d.txt")
    assert found == {wanted}


@pytest.mark.parametrize("begins", ["one = 1\n", "uno = 1\n"])
def test_a_command_that_began_with_an_earlier_engine(
    agent: Agent, said: Callable[..., Any], begins: str
) -> None:
    file, command = agent.cwd / "a.py", f"sed -i s/one/uno/ a*; {HERE}"
    file.write_text("one = 1\n")
    agent.answer()
    agent.read("a.py")
    agent.answer()
    id, _ = agent.prepare("bash", command=command)
    file.write_text(begins)
    agent.close()
    agent.engine = Engine(Config(home=agent.home), Host())
    agent.open([RunningTool(id=id, tool="bash", input={"command": command})])
    agent.finish(id, "bash", command=command)
    agent.answer()
    for name in ("a.py", "made.py"):
        (line, *_) = said("blame", str(agent.cwd / name))["lines"]
        assert (line["by"], line["tool"]) == ("agent", "bash")

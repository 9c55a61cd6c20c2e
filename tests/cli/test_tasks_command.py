"""`foredeck tasks`: what people and programs see of a project's tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foredeck.cli.main import main


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which is a project."""
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path / "home"))
    (tmp_path / "repo").mkdir()
    monkeypatch.chdir(tmp_path / "repo")
    return tmp_path / "repo"


class Shell:
    """Runs commands and gives what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str, code: int = 0) -> str:
        assert main(["tasks", *words]) == code
        captured = self._capsys.readouterr()
        return captured.err if code else captured.out

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))


@pytest.fixture
def tasks(project: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    assert project.is_dir()
    return Shell(capsys)


def test_a_plan_from_beginning_to_end(tasks: Shell) -> None:
    epic = tasks.json("new", "Build the login", "--type", "epic")["name"]
    schema = tasks.json("new", "Write the schema", "--parent", epic, "--label", "#auth")["name"]
    form = tasks.json("new", "Draw the form", "--parent", epic, "--after", schema)["name"]
    assert tasks("ready") == f"{schema} P2: Write the schema #auth\n1 ready, 2 blocked.\n"
    claimed = tasks.json("claim", schema, "--as", "ann")
    assert (claimed["assignee"], claimed["generator"]) == ("ann", "human")
    assert "Task is blocked by open dependencies" in tasks("claim", form, code=2)
    closed = tasks.json("close", schema, "Made LoginSchema.")
    assert (closed["status"], closed["close_reason"]) == ("closed", "completed")
    assert [t["name"] for t in tasks.json("ready")["tasks"]] == [form]
    assert [t["name"] for t in tasks.json("search", "loginschema")["tasks"]] == [schema]
    assert tasks("search", "s3").startswith("No task has these words.\n")
    assert [t["name"] for t in tasks.json("list", "--status", "closed")["tasks"]] == [schema]


def test_changes_of_mind(tasks: Shell) -> None:
    one, two = (tasks.json("new", title)["name"] for title in ("One", "Two"))
    tasks("dep", two, one)
    assert "circle" in tasks("dep", one, two, code=2)
    assert tasks.json("show", two)["blocked_by"] == [tasks.json("show", one)["id"]]
    tasks("dep", two, one, "--remove")
    tasks("edit", two, "--title", "Second", "--priority", "0", "--description", "At length.")
    assert "description: At length." in tasks("show", two)
    assert "Nothing to change" in tasks("edit", two, code=2)
    tasks("close", two, "No use.", "--reason", "wontfix")
    assert tasks.json("open", two)["status"] == "open"
    assert tasks("list").startswith(f"{two} P0: Second\n{one} P2: One\n")


def test_other_projects_have_tasks_of_their_own(tasks: Shell, tmp_path: Path) -> None:
    tasks("new", "One")
    (tmp_path / "other").mkdir()
    assert tasks("--project", str(tmp_path / "other")) == "No tasks.\n"


def test_flags_count_before_the_action_and_after_it(tasks: Shell) -> None:
    tasks("new", "One")
    assert tasks("--json", "list") == tasks("list", "--json")


def test_what_is_not_there(tasks: Shell) -> None:
    assert "nothing is stored yet" in tasks("list", code=3)
    tasks("new", "One")
    missing = tasks("show", "t-zzzz", code=4)
    assert "Task not found: t-zzzz. `foredeck tasks list` shows" in missing


def test_nothing_is_kept_for_a_folder_that_is_not_there(tasks: Shell, tmp_path: Path) -> None:
    missing = str(tmp_path / "mistyped")
    assert f"{missing}: no such folder" in tasks("new", "One", "--project", missing, code=2)
    assert main(["memory", "add", "One", "--project", missing]) == 2


def test_refusals_name_what_a_person_types(tasks: Shell) -> None:
    name = tasks.json("new", "One")["name"]
    tasks("claim", name)
    assert "`foredeck tasks list` shows others" in tasks("claim", name, "--as", "bob", code=2)
    tasks("close", name, "done")
    assert "`foredeck tasks open TASK`" in tasks("claim", name, code=2)
    assert "say what is to be done" in tasks("new", " ", code=2)

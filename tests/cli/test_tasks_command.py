"""`foredeck tasks`: what people and programs see of a project's tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commands import Foredeck
from foredeck.cli.main import main


class Tasks:
    """Runs `foredeck tasks`."""

    def __init__(self, foredeck: Foredeck) -> None:
        self._foredeck = foredeck

    def __call__(self, *words: str, code: int = 0) -> str:
        return self._foredeck("tasks", *words, code=code)

    def json(self, *words: str) -> Any:
        return self._foredeck.json("tasks", *words)


@pytest.fixture
def tasks(project: Path, foredeck: Foredeck) -> Tasks:
    assert project.is_dir()
    return Tasks(foredeck)


def test_a_plan_from_beginning_to_end(tasks: Tasks) -> None:
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


def test_changes_of_mind(tasks: Tasks) -> None:
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


def test_other_projects_have_tasks_of_their_own(tasks: Tasks, tmp_path: Path) -> None:
    tasks("new", "One")
    (tmp_path / "other").mkdir()
    assert tasks("--project", str(tmp_path / "other")) == "No tasks.\n"


def test_flags_count_before_the_action_and_after_it(tasks: Tasks) -> None:
    tasks("new", "One")
    assert tasks("--json", "list") == tasks("list", "--json")


def test_what_is_not_there(tasks: Tasks) -> None:
    tasks("new", "One")
    missing = tasks("show", "t-zzzz", code=4)
    assert "Task not found: t-zzzz. `foredeck tasks list` shows" in missing


def test_nothing_is_kept_for_a_folder_that_is_not_there(tasks: Tasks, tmp_path: Path) -> None:
    missing = str(tmp_path / "mistyped")
    assert f"{missing}: no such folder" in tasks("new", "One", "--project", missing, code=2)
    assert main(["memory", "add", "One", "--project", missing]) == 2


def test_refusals_name_what_a_person_types(tasks: Tasks) -> None:
    name = tasks.json("new", "One")["name"]
    tasks("claim", name)
    assert "`foredeck tasks list` shows others" in tasks("claim", name, "--as", "bob", code=2)
    tasks("close", name, "done")
    assert "`foredeck tasks open TASK`" in tasks("claim", name, code=2)
    assert "say what is to be done" in tasks("new", " ", code=2)

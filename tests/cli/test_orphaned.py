"""What people see of files that cannot be looked at where they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands import Foredeck
from file_agent import FileAgent

SESSION = "0199aaaa-stick"


@pytest.fixture
def stick(tmp_path: Path) -> Path:
    """A folder outside the project, in which an agent has read a file, and one that it has read in
    the project."""
    work, stick = tmp_path / "work", tmp_path / "stick"
    for folder in (work / "src", stick):
        folder.mkdir(parents=True)
        (folder / "a.py").write_text("a = 1\n")
    agent = FileAgent(tmp_path / "home", work, SESSION)
    agent.answer()
    agent.read(str(stick / "a.py"))
    agent.read("src/a.py")
    agent.answer()
    agent.close()
    return stick


def test_orphaned_is_said_until_the_file_is_there_again(
    stick: Path, tmp_path: Path, foredeck: Foredeck
) -> None:
    def said(*arguments: str) -> str:
        foredeck(tmp_path / "home", *arguments)
        return foredeck.out

    def states() -> dict[str, Any]:
        index = json.loads(said("show", SESSION, "--sets", "--json"))["index"]
        return {each["name"]: each["tracking"] for each in index if each["type"] == "file"}

    away, here = str(stick / "a.py"), str(tmp_path / "work" / "src" / "a.py")
    assert states() == {away: "tracked", here: "tracked"}
    assert "orphaned:" not in said("history", away)
    stick.rename(tmp_path / "elsewhere")
    assert states() == {away: "orphaned", here: "tracked"}
    assert said("show", SESSION, "--sets").count(", orphaned ") == 1
    assert "\norphaned: it cannot be looked at where it was" in said("history", away)
    assert json.loads(said("history", away, "--json"))["tracking"] == "orphaned"
    found = {each["name"]: each for each in json.loads(said("doctor", "--json"))["checks"]}
    assert found["files"]["text"] == (
        f"1 file cannot be looked at where it was (the last versions stay): {away}"
    )
    (tmp_path / "elsewhere").rename(stick)
    assert states() == {away: "tracked", here: "tracked"}
    # In the project a folder that is gone was removed with its files.
    (tmp_path / "work" / "src").rename(tmp_path / "elsewhere")
    assert states() == {away: "tracked", here: "tracked"}

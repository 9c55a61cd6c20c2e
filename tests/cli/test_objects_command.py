"""`foredeck objects`: which objects are stored, by what is known of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commands import Foredeck
from context.driver import Host
from context.messages import lines
from context.scenes import ask
from context.working import Work


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """One session reads a file and runs a command that fails, another lists a file."""
    folder = tmp_path / "repo"
    folder.mkdir()
    work = Work(Host(tmp_path / "home", session="first", cwd=str(folder.resolve()), disk=True))
    work.file("orders.py", lines(40))
    work.file("notes.md", "# Notes\n")
    ask(work.host)
    work.read("orders.py")
    work.run("bash", "no such test", command="make test")
    work.host.close()
    other = Work(Host(tmp_path / "home", session="second", cwd=str(folder.resolve()), disk=True))
    ask(other.host)
    other.run("ls", "notes.md", path=".")
    other.host.close()
    return tmp_path / "home"


@pytest.fixture
def found(home: Path, foredeck: Foredeck) -> Any:
    """The names of the objects that a filter finds, and how many there are."""

    def run(*filters: str) -> tuple[list[str], int]:
        told = foredeck.json(home, "objects", *filters)
        names = [each["name"].replace(f"{home.parent}/repo/", "") for each in told["objects"]]
        return names, told["total"]

    return run


def test_a_file_that_was_only_listed_is_said_to_be_so(home: Path, foredeck: Foredeck) -> None:
    assert "listed, not read" in foredeck(home, "history", f"{home.parent}/repo/notes.md")


def test_each_filter_leaves_what_it_names(found: Any) -> None:
    assert found("--type", "file")[0] == ["notes.md", "orders.py"]
    assert found("--type", "file", "--path", "ORDERS") == (["orders.py"], 1)
    assert found("--status", "listed")[0] == ["notes.md"]
    assert found("--file-type", "md")[0] == ["notes.md"]
    assert found("--tool", "read")[0] == ["read orders.py"]
    assert found("--type", "file", "--session", "first")[0] == ["orders.py"]
    assert found("--harness", "pi")[1] == 2
    assert found("--type", "toolcall", "--type", "file", "--path", ".py")[1] == 2
    assert found("--type", "toolcall", "--status", "fail") == ([], 0)


def test_the_newest_come_first_and_the_rest_is_counted(
    home: Path, found: Any, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    every = found()
    assert found("--limit", "2") == (every[0][:2], every[1])
    told = foredeck(home, "objects", "--type", "file", "--limit", "1").splitlines()
    assert told[0] == "1 object, the newest first of 2; --limit shows more."
    assert "notes.md" in told[3]


def test_a_nickname_is_named_and_an_unknown_type_refused(home: Path, foredeck: Foredeck) -> None:
    place = ["--home", str(home)]
    foredeck("name", f"{home.parent}/repo/orders.py", "orders", *place)
    assert (
        foredeck.json("objects", "--path", "orders.py", "--type", "file", *place)["objects"][0][
            "nickname"
        ]
        == "orders"
    )
    for option, names in (("--type", "file, toolcall"), ("--status", "ok, fail, text")):
        assert f"there is no 'thing'; there are {names}" in foredeck(
            "objects", option, "thing", *place, code=2
        )


def test_a_path_keeps_its_end_and_a_listed_file_has_no_size(
    home: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    told = foredeck(home, "objects", "--type", "file").splitlines()
    assert told[2].split() == ["type", "time", "status", "chars", "object"]
    rows = [line.split() for line in told[3:5]]
    assert [(row[-2], row[-1][0], row[-1][-8:]) for row in rows] == [
        ("listed", "…", "notes.md"),
        (rows[1][-2], "…", "rders.py"),
    ]
    assert all(len(line) <= 60 for line in told[2:5])

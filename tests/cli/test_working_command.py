"""`foredeck working`: the project's page, shown and changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.stored_session import SESSION, make_home
from foredeck.cli.main import main
from foredeck.store.store import open_sqlite


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path / "home"))
    return folder


def test_a_section_is_written_and_shown(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "src").mkdir()
    monkeypatch.chdir(project / "src")  # the same repository
    assert main(["working", "Tech Stack", "- Language: Python"]) == 0
    monkeypatch.chdir(project)
    capsys.readouterr()

    assert main(["working", "tech stack"]) == 0
    assert capsys.readouterr().out == "## Tech Stack\n- Language: Python\n"
    assert main(["working", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["shown"] == "## Tech Stack\n- Language: Python"
    assert told["scope"] == "resource"


def test_the_history_of_a_page_goes_by_the_start_of_its_id(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project.is_dir()
    assert main(["working", "Tech Stack", "- Language: Python"]) == 0
    capsys.readouterr()
    assert main(["history", "working:resource", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["versions"]) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["Nothing"], 4, "no section 'Nothing'; the sections are: "),
        (["--session", "s1"], 4, "no session is stored here"),
        (["A", "x" * 5000], 1, "4,000 are kept"),
    ],
)
def test_refusals(
    arguments: list[str],
    code: int,
    said: str,
    project: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    open_sqlite(project.parent / "home" / "foredeck.db").close()
    assert main(["working", *arguments]) == code
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_a_session_goes_by_the_start_of_its_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = str(make_home(tmp_path / "stored"))
    assert main(["working", "Goal", "- Ship it", "--session", SESSION, "--home", home]) == 0
    assert main(["working", "Goal", "--session", SESSION[:6], "--home", home]) == 0
    assert capsys.readouterr().out.endswith("## Goal\n- Ship it\n")


def test_reading_makes_no_store(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del project
    assert main(["working"]) == 3
    assert "nothing is stored yet" in capsys.readouterr().err
    assert not (tmp_path / "home").exists()


def test_an_empty_text_removes_a_section(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert project
    assert main(["working", "Mine", "- x"]) == 0
    capsys.readouterr()
    assert main(["working", "Mine", ""]) == 0
    assert capsys.readouterr().out == "Section Mine is removed.\n"
    assert main(["working", "Mine"]) == 4

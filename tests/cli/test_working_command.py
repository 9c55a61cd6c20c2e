"""`foredeck working`: the project's page, shown and changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.stored_session import SESSION, make_home
from commands import Foredeck
from foredeck.store.store import open_sqlite


def test_a_section_is_written_and_shown(
    project: Path, monkeypatch: pytest.MonkeyPatch, foredeck: Foredeck
) -> None:
    (project / "src").mkdir()
    monkeypatch.chdir(project / "src")  # the same repository
    foredeck("working", "Tech Stack", "- Language: Python")
    monkeypatch.chdir(project)

    assert foredeck("working", "tech stack") == "## Tech Stack\n- Language: Python\n"
    told = foredeck.json("working")
    assert told["shown"] == "## Tech Stack\n- Language: Python"
    assert told["scope"] == "resource"


def test_the_history_of_a_page_goes_by_the_start_of_its_id(
    project: Path, foredeck: Foredeck
) -> None:
    assert project.is_dir()
    foredeck("working", "Tech Stack", "- Language: Python")
    assert len(foredeck.json("history", "working:resource")["versions"]) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["Nothing"], 4, "no section 'Nothing'; the sections are: "),
        (["--session", "s1"], 4, "no session is stored here"),
        (["A", "x" * 5000], 1, "4,000 are kept"),
    ],
)
def test_refusals(
    arguments: list[str], code: int, said: str, project: Path, foredeck: Foredeck
) -> None:
    open_sqlite(project.parent / "home" / "foredeck.db").close()
    assert said in foredeck("working", *arguments, code=code)


@pytest.mark.usefixtures("project")
def test_a_session_goes_by_the_start_of_its_id(tmp_path: Path, foredeck: Foredeck) -> None:
    home = str(make_home(tmp_path / "stored"))
    foredeck("working", "Goal", "- Ship it", "--session", SESSION, "--home", home)
    assert foredeck("working", "Goal", "--session", SESSION[:6], "--home", home).endswith(
        "## Goal\n- Ship it\n"
    )


def test_an_empty_text_removes_a_section(project: Path, foredeck: Foredeck) -> None:
    assert project
    foredeck("working", "Mine", "- x")
    assert foredeck("working", "Mine", "") == "Section Mine is removed.\n"
    foredeck("working", "Mine", code=4)

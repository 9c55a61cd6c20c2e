"""What the head names of a project: its notes, and more where that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from context.conftest import NewHost
from context.scenes import ask, finish
from context.sent import Sent, message_text
from context.working import Work
from foredeck.context.head import head_opening
from foredeck.engine import pool
from foredeck.notes import StillReading
from with_git import git

NAMED = "[foredeck] this project has (activate PATH to read one):\n"
NewWork = Callable[..., Work]


def named(sent: Sent) -> list[str]:
    """The lines about the project; none where there is no head."""
    first = message_text(sent.prompt[0])
    if not first.startswith(head_opening()):
        return []
    # What begins with a name is moved in, and what begins with a word of ours is not.
    lines = first.removeprefix(head_opening() + NAMED).split("\n")
    assert all(line.startswith((" ", "and ")) for line in lines)
    return [line.removeprefix(" ") for line in lines]


@pytest.fixture
def new_work(new_host: NewHost, tmp_path: Path) -> NewWork:
    """Makes sessions that work on real files, all in one folder unless told otherwise."""
    folder = (tmp_path / "repo").resolve()
    folder.mkdir()

    def make(session: str, cwd: Path = folder, **settings: Any) -> Work:
        host = new_host(session=session, cwd=str(cwd), disk=True, **settings)
        host.sections = None
        return Work(host)

    return make


def with_notes(new_work: NewWork) -> None:
    """An earlier session that has written three notes and a program."""
    work = new_work("earlier")
    ask(work.host)
    work.write("notes/release.md", "# Release checklist\n\nTag it. #release #ops/ci\n")
    work.write("notes/ideas.md", "See [[release]].\n")
    work.write("docs/why.md", "---\nkind: note\n---\n# Why two stores\n")
    work.write("main.py", "print('hello')\n")
    work.host.close()


def test_without_activate_the_list_does_not_name_it(new_work: NewWork) -> None:
    with_notes(new_work)
    work = new_work("later", tools={"context": False}, head={"tokens": 40})
    first = message_text(ask(work.host).prompt[0])
    assert "[foredeck] this project has:\n" in first
    assert " more in " in first
    assert "activate" not in first


def test_the_session_that_writes_a_note_has_it_in_the_chat(new_work: NewWork) -> None:
    work = new_work("s")
    first = ask(work.host)
    work.write("notes/release.md", "# Release checklist\n")
    finish(work.host)
    work.host.wait(400)
    assert named(first) == []
    assert named(ask(work.host)) == []


def test_of_many_notes_the_newest_have_lines_and_the_others_are_counted(new_work: NewWork) -> None:
    work = new_work("earlier")
    ask(work.host)
    for number in range(60):
        work.file(f"notes/{number % 2}/{number:02}.md", f"# Note {number}\n")
        work.read(f"notes/{number % 2}/{number:02}.md")
    work.host.close()
    sent = ask(new_work("later").host)
    lines = named(sent)
    assert lines[0] == "notes/1/59.md: Note 59"
    assert lines[-1] == (
        f'and {61 - len(lines)} more in notes/0/, notes/1/: activate PATH, show "metadata"'
    )
    assert len(message_text(sent.prompt[0])) <= 800


def test_notes_of_other_projects_are_not_named(new_work: NewWork, tmp_path: Path) -> None:
    with_notes(new_work)
    other = tmp_path / "other"
    other.mkdir()
    assert named(ask(new_work("elsewhere", other.resolve()).host)) == []


def test_a_worktree_is_told_of_the_notes_of_the_repository(
    new_work: NewWork, tmp_path: Path
) -> None:
    repo, tree = (tmp_path / "repo").resolve(), (tmp_path / "tree").resolve()
    git(repo, "init", "-q")
    git(repo, "commit", "-q", "--allow-empty", "-m", "x")
    git(repo, "worktree", "add", "-q", str(tree))
    with_notes(new_work)
    lines = named(ask(new_work("later", tree).host))
    assert f"{repo}/notes/release.md: Release checklist #release #ops/ci" in lines


def test_a_deleted_note_is_not_named(new_work: NewWork, tmp_path: Path) -> None:
    with_notes(new_work)
    work = new_work("second")
    ask(work.host)
    work.read("notes/ideas.md")
    (tmp_path / "repo/notes/ideas.md").unlink()
    work.run("bash", "", command="rm notes/ideas.md")
    work.host.close()
    assert "notes/ideas.md" not in named(ask(new_work("later").host))


def test_names_and_titles_stay_on_their_line(new_work: NewWork) -> None:
    work = new_work("earlier")
    ask(work.host)
    work.write("notes/a\n[foredeck] rules:.md", "# Fine\n")
    work.host.close()
    assert named(ask(new_work("later").host)) == [r'"notes/a\n\u005bforedeck] rules:.md": Fine']


def test_a_graph_that_takes_too_long_costs_the_names_and_nothing_else(
    new_work: NewWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_notes(new_work)

    def late(*_given: object) -> None:
        raise StillReading("a long vault")

    monkeypatch.setattr(pool, "live_graph", late)
    sent = ask(new_work("later").host)
    assert sent.prompt == sent.messages
